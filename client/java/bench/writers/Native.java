// SPDX-License-Identifier: PostgreSQL

/** Events by libtally, called by JNI. */
public final class Native {
    private Native() {
    }

    static native int open(String path);

    static native void add(long value);

    /** Opens the segment. */
    public static Writers.Way way(String path) {
        System.load(System.getProperty("library"));
        if (open(path) != 0) {
            throw new IllegalStateException("could not create " + path);
        }
        return Native::add;
    }
}
