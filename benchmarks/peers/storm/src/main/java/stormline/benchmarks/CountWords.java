package stormline.benchmarks;

import java.math.BigInteger;
import java.util.HashMap;
import java.util.Map;
import org.apache.storm.coordination.BatchOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BaseTransactionalBolt;
import org.apache.storm.transactional.ICommitter;
import org.apache.storm.transactional.TransactionAttempt;
import org.apache.storm.tuple.Tuple;

/** Counts a batch's words and adds the counts to the stored ones in the commit phase, by the txid beside them. */
public class CountWords extends BaseTransactionalBolt implements ICommitter {
    private final String run;
    private TransactionAttempt attempt;
    private final Map<String, Long> counts = new HashMap<>();

    CountWords(String run) {
        this.run = run;
    }

    @Override
    public void prepare(Map conf, TopologyContext context, BatchOutputCollector collector, TransactionAttempt attempt) {
        this.attempt = attempt;
    }

    @Override
    public void execute(Tuple tuple) {
        counts.merge(tuple.getString(1), 1L, Long::sum);
    }

    @Override
    public void finishBatch() {
        BigInteger txid = attempt.getTransactionId();
        Database database = Database.of(run);
        for (Map.Entry<String, Long> entry : counts.entrySet()) {
            database.add(entry.getKey(), entry.getValue(), txid);
        }
        database.finished(txid.longValueExact());
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {}
}
