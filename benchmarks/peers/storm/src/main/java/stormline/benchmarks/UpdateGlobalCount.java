package stormline.benchmarks;

import java.util.Map;
import org.apache.storm.coordination.BatchOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseTransactionalBolt;
import org.apache.storm.transactional.ICommitter;
import org.apache.storm.transactional.TransactionAttempt;
import org.apache.storm.tuple.Tuple;

/** Adds a batch's counts to the stored one in the commit phase, by the txid beside it. */
public class UpdateGlobalCount extends BaseTransactionalBolt implements ICommitter {
    private final String run;
    private TransactionAttempt attempt;
    private long sum;

    UpdateGlobalCount(String run) {
        this.run = run;
    }

    @Override
    public void prepare(Map conf, TopologyContext context, BatchOutputCollector collector, TransactionAttempt attempt) {
        this.attempt = attempt;
    }

    @Override
    public void execute(Tuple tuple) {
        sum += tuple.getLong(1);
    }

    @Override
    public void finishBatch() {
        Database database = Database.of(run);
        database.add("global", sum, attempt.getTransactionId());
        database.finished(attempt.getTransactionId().longValueExact());
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {}
}
