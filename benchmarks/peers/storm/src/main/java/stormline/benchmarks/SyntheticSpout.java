package stormline.benchmarks;

import java.util.Map;
import org.apache.storm.coordination.BatchOutputCollector;
import org.apache.storm.task.TopologyContext;
import org.apache.storm.topology.OutputFieldsDeclarer;
import org.apache.storm.topology.base.BasePartitionedTransactionalSpout;
import org.apache.storm.transactional.TransactionAttempt;
import org.apache.storm.transactional.partitioned.IPartitionedTransactionalSpout;
import org.apache.storm.tuple.Fields;
import org.apache.storm.tuple.Values;

/**
 * Makes words up until the run is measured. A batch is the next words of the data, {@code take} from each partition in
 * turn. A partition's metadata counts its tuples to the end of the batch, so a replay emits the same tuples.
 */
public class SyntheticSpout extends BasePartitionedTransactionalSpout<Long> {
    private final String run;
    private final int partitions;
    private final int take;

    SyntheticSpout(String run, int partitions, int take) {
        this.run = run;
        this.partitions = partitions;
        this.take = take;
    }

    int partitions() {
        return partitions;
    }

    @Override
    public IPartitionedTransactionalSpout.Coordinator getCoordinator(Map conf, TopologyContext context) {
        return new Coordinator();
    }

    @Override
    public IPartitionedTransactionalSpout.Emitter<Long> getEmitter(Map conf, TopologyContext context) {
        return new Emitter();
    }

    @Override
    public void declareOutputFields(OutputFieldsDeclarer declarer) {
        declarer.declare(new Fields("tx", "word"));
    }

    private class Coordinator implements IPartitionedTransactionalSpout.Coordinator {
        @Override
        public int numPartitions() {
            return partitions;
        }

        @Override
        public boolean isReady() {
            return !Database.of(run).isDone();
        }

        @Override
        public void close() {}
    }

    private class Emitter implements IPartitionedTransactionalSpout.Emitter<Long> {
        @Override
        public Long emitPartitionBatchNew(
                TransactionAttempt attempt, BatchOutputCollector collector, int partition, Long last) {
            Long end = (last == null ? 0 : last) + take;
            emitPartitionBatch(attempt, collector, partition, end);
            return end;
        }

        @Override
        public void emitPartitionBatch(
                TransactionAttempt attempt, BatchOutputCollector collector, int partition, Long end) {
            long first = (end - take) * partitions + (long) partition * take;
            for (int i = 0; i < take; i++) {
                collector.emit(new Values(attempt, Data.word(first + i)));
            }
        }

        @Override
        public void close() {}
    }
}
