package stormline.benchmarks;

/** The data of every peer: word i is "word" + (i * 7919 % 1000), so 1,000 distinct words in one fixed order. */
final class Data {
    static final int DISTINCT = 1000;
    private static final int STRIDE = 7919;
    private static final String[] WORDS = new String[DISTINCT];

    static {
        for (int i = 0; i < DISTINCT; i++) {
            WORDS[i] = "word" + i;
        }
    }

    private Data() {}

    static String word(long i) {
        return WORDS[(int) (i * STRIDE % DISTINCT)];
    }

    /** How often the word of number {@code word} is among words 0 to {@code tuples - 1}. */
    static long[] counts(long tuples) {
        long[] counts = new long[DISTINCT];
        for (int i = 0; i < DISTINCT; i++) {
            counts[(int) ((long) i * STRIDE % DISTINCT)] = tuples / DISTINCT + (i < tuples % DISTINCT ? 1 : 0);
        }
        return counts;
    }
}
