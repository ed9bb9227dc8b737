package stormline.benchmarks;

import java.io.PrintStream;
import java.util.Locale;
import org.apache.storm.Config;
import org.apache.storm.LocalCluster;
import org.apache.storm.generated.KillOptions;
import org.apache.storm.generated.StormTopology;
import org.apache.storm.transactional.TransactionalTopologyBuilder;
import org.apache.storm.tuple.Fields;
import org.apache.storm.utils.VersionInfo;

/**
 * Runs one measurement after another in one LocalCluster and prints one JSON line for each.
 *
 * <p>Arguments: {@code warm-up-secs secs-max}, then for each measurement {@code
 * work,batches,batch-tuples,partitions,pending,disruptor-batch-size}.
 */
public final class StormPeer {
    private static final double START_SECS_MAX = 60;

    private static final int COUNTING_TASKS = 2;

    private StormPeer() {}

    public static void main(String[] args) {
        PrintStream results = System.out;
        System.setOut(System.err); // logging must not mix with results
        int status = 1;
        try {
            double warmUpSecs = Double.parseDouble(args[0]);
            double secsMax = Double.parseDouble(args[1]);
            LocalCluster cluster = new LocalCluster();
            for (int i = 2; i < args.length; i++) {
                results.println(measure(cluster, args[i].split(","), warmUpSecs, secsMax));
                results.flush();
            }
            status = 0;
        } catch (Throwable failure) {
            failure.printStackTrace();
        }
        // All of the cluster is in this process, its files in a folder that the caller removes: a plain end is enough.
        Runtime.getRuntime().halt(status);
    }

    private static String measure(LocalCluster cluster, String[] spec, double warmUpSecs, double secsMax)
            throws Exception {
        String work = spec[0];
        long batches = Long.parseLong(spec[1]);
        int batchTuples = Integer.parseInt(spec[2]);
        int partitions = Integer.parseInt(spec[3]);
        int pending = Integer.parseInt(spec[4]);
        int disruptorBatch = Integer.parseInt(spec[5]);
        if (batchTuples % partitions != 0) {
            throw new IllegalArgumentException(batchTuples + " tuples do not divide into " + partitions);
        }
        boolean words = work.equals("words");
        Config conf = new Config();
        conf.setMaxSpoutPending(pending);
        conf.put(Config.TOPOLOGY_DISRUPTOR_BATCH_SIZE, disruptorBatch);

        Database database = new Database(work, words ? COUNTING_TASKS : 1, batches, warmUpSecs, secsMax);
        SyntheticSpout spout = new SyntheticSpout(work, partitions, batchTuples / partitions);
        cluster.submitTopology(work, conf, words ? words(work, spout) : globalCount(work, spout));
        if (!database.awaitDone(START_SECS_MAX + warmUpSecs + 2 * secsMax)) {
            throw new IllegalStateException(work + ": no end after transaction " + database.txid());
        }
        KillOptions now = new KillOptions();
        now.set_wait_secs(0);
        cluster.killTopologyWithOpts(work, now);

        long total = words ? checkWords(database, batchTuples) : checkGlobalCount(database, batchTuples);
        long measured = database.batchesMeasured();
        return String.format(
                Locale.ROOT,
                "{\"peer\": \"storm\", \"version\": \"%s\", \"work\": \"%s\", \"tuples\": %d, \"batches\": %d, "
                        + "\"secs\": %.6f, \"result\": {\"total\": %d, \"distinct\": %d}, "
                        + "\"notes\": \"pending %d, disruptor batch %d, Java %s\"}",
                VersionInfo.getVersion(), work, measured * batchTuples, measured, database.secs(), total,
                database.distinct(), pending, disruptorBatch, System.getProperty("java.version"));
    }

    private static StormTopology globalCount(String run, SyntheticSpout spout) {
        TransactionalTopologyBuilder builder = new TransactionalTopologyBuilder(run, "spout", spout, spout.partitions());
        builder.setBolt("partial-count", new BatchCount(), COUNTING_TASKS).noneGrouping("spout");
        builder.setBolt("sum", new UpdateGlobalCount(run)).globalGrouping("partial-count");
        return builder.buildTopology();
    }

    private static StormTopology words(String run, SyntheticSpout spout) {
        TransactionalTopologyBuilder builder = new TransactionalTopologyBuilder(run, "spout", spout, spout.partitions());
        builder.setBolt("count", new CountWords(run), COUNTING_TASKS).fieldsGrouping("spout", new Fields("word"));
        return builder.buildTopology();
    }

    private static long checkGlobalCount(Database database, int batchTuples) {
        long expected = database.txid() * batchTuples;
        return check("the stored count", database.count("global"), expected);
    }

    private static long checkWords(Database database, int batchTuples) {
        long[] expected = Data.counts(database.txid() * batchTuples);
        long total = 0;
        for (int i = 0; i < Data.DISTINCT; i++) {
            total += check("word" + i, database.count("word" + i), expected[i]);
        }
        return total;
    }

    private static long check(String what, long got, long expected) {
        if (got != expected) {
            throw new IllegalStateException(what + " is " + got + ", not " + expected);
        }
        return got;
    }
}
