package stormline.benchmarks;

import java.math.BigInteger;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/**
 * The stored counts of one run, as storm-starter has them in a static map, and the clock of its commits.
 *
 * <p>Time begins with the commit that ends the warm-up and ends with the commit of the last batch measured. More
 * batches are always under way, at both ends, so neither end flatters the run. Transaction n + 1 commits only after
 * every committing task has committed n; therefore the counts hold exactly n batches when the last task reports n.
 */
final class Database {
    private static final Map<String, Database> BY_RUN = new ConcurrentHashMap<>();

    private static final class Value {
        final long count;
        final BigInteger txid;

        Value(long count, BigInteger txid) {
            this.count = count;
            this.txid = txid;
        }
    }

    private final int committers;
    private final double warmUpSecs;
    private final double secsMax;
    private final long batches;
    private final Map<String, Value> counts = new ConcurrentHashMap<>();
    private final CountDownLatch done = new CountDownLatch(1);
    private long firstCommit;
    private long begun;
    private long txidBegun;
    private long txid;
    private int finished;
    private double secs;

    Database(String run, int committers, long batches, double warmUpSecs, double secsMax) {
        this.committers = committers;
        this.batches = batches;
        this.warmUpSecs = warmUpSecs;
        this.secsMax = secsMax;
        BY_RUN.put(run, this);
    }

    /** The database of a run: an earlier run's topology may still be stopping, and must not reach a later one's. */
    static Database of(String run) {
        return BY_RUN.get(run);
    }

    /** Adds to a key's count, unless the transaction has done so before or the measurement is over. */
    void add(String key, long more, BigInteger txid) {
        if (isDone()) {
            return;
        }
        Value old = counts.get(key);
        if (old == null || !old.txid.equals(txid)) {
            counts.put(key, new Value(more + (old == null ? 0 : old.count), txid));
        }
    }

    /** Called by each committing task at the end of its commit of {@code finishedTxid}. */
    synchronized void finished(long finishedTxid) {
        if (isDone()) {
            return;
        }
        finished = finishedTxid == txid ? finished + 1 : 1;
        txid = finishedTxid;
        if (finished < committers) {
            return;
        }
        long now = System.nanoTime();
        if (firstCommit == 0) {
            firstCommit = now;
        }
        if (begun == 0) {
            if (now - firstCommit >= warmUpSecs * 1e9) {
                begun = now;
                txidBegun = txid;
            }
            return;
        }
        secs = (now - begun) / 1e9;
        if (batchesMeasured() >= batches || secs >= secsMax) {
            done.countDown();
        }
    }

    boolean isDone() {
        return done.getCount() == 0;
    }

    boolean awaitDone(double timeoutSecs) throws InterruptedException {
        return done.await((long) (timeoutSecs * 1000), TimeUnit.MILLISECONDS);
    }

    synchronized long txid() {
        return txid;
    }

    synchronized long batchesMeasured() {
        return txid - txidBegun;
    }

    synchronized double secs() {
        return secs;
    }

    long count(String key) {
        Value value = counts.get(key);
        return value == null ? 0 : value.count;
    }

    int distinct() {
        return counts.size();
    }
}
