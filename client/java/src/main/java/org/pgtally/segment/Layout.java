// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

/**
 * Offsets of the segment (format/FORMAT.md), in bytes, as far as the agent writes them. {@code tally} reads what this
 * writer wrote in crates/tally/tests/methods.rs, so the two definitions cannot drift apart.
 */
final class Layout {
    static final long PAGE = 4096;

    static final int HEADER_SIZE = 4096;
    static final int HIST_BUCKETS = 336;

    // The header.
    static final int H_BYTE_ORDER = 8;
    static final int H_VERSION = 12;
    static final int H_HEADER_SIZE = 16;
    static final int H_HIST_BUCKETS = 20;
    static final int H_SEGMENT_SIZE = 24;
    static final int H_CLOCK_KIND = 32;
    static final int H_CLOCK_TICK0 = 40;
    static final int H_CLOCK_NS0 = 48;
    static final int H_CREATED_NS = 56;
    static final int H_PID_NAMESPACE = 64;
    static final int H_SLOTS = 72;
    static final int H_GROUPS = 76;
    static final int H_STATS_PER_BOOK = 80;
    static final int H_BOOT_ID = 88;
    static final int H_PROBES = 128;
    static final int H_DIRECTORY = 144;
    static final int H_EVENTS = 160;
    static final int H_MERGE_LOG = 176;
    static final int H_JOURNAL = 192;
    static final int H_ENTRIES = 208;
    static final int H_BOOKS = 224;
    static final int H_HOST = 240;
    static final int H_PRODUCER = 496;
    static final int H_SERVER = 560;
    static final int H_SERVER_PID = 624;
    static final int H_TRACES = 984;
    static final int H_LEVEL_WORD = 1024;
    static final int H_RESET_TICK = 1032;
    static final int H_LEVEL_UNTIL = 1040;
    static final int H_LEVEL_THEN = 1048;
    static final int H_TRACES_ARMED = 1080;
    static final int H_OVERFLOW_SLOTS = 1152;
    static final int H_OVERFLOW_STATS = 1160;
    static final int H_OVERFLOW_DIRECTORY = 1168;
    static final int H_OVERFLOW_GROUPS = 1176;
    static final int H_OVERFLOW_MEMORY = 1184;
    static final int H_EVENT_COUNT = 1192;
    static final int H_MERGE_LOCK = 1280;
    static final int H_MERGE_LOCK_BOOT_NS = 1288;
    static final int H_MERGE_COUNT = 1296;
    static final int H_MERGE_ACTIVE = 1304;
    static final int H_REFUSED_MEMORY = 1368;

    // An entry of the probe table.
    static final int PROBE_SIZE = 192;
    static final int PROBE_NAME = 8;
    static final int PROBE_REASON = 72;

    // An entry of the directory.
    static final int DIRECTORY_SIZE = 128;
    static final int D_KIND = 4;
    static final int D_HASH = 8;
    static final int D_NAME = 16;
    static final int D_UNIT = 112;
    static final int D_CLASS = 127;
    static final int NAME_MAX = 95;

    // An event.
    static final int EVENT_SIZE = 256;
    static final int E_TICK = 8;
    static final int E_PID = 16;
    static final int E_KIND = 20;
    static final int E_TEXT = 24;

    // The journal.
    static final int JOURNAL_SIZE = 2768;
    static final int J_SLOT = 4;
    static final int J_GROUP = 8;
    static final int J_HEAD = 12;
    static final int J_SAVED = 16;
    static final int J_HIST = 80;

    // An entry of a slot or group.
    static final int ENTRY_SIZE = 384;
    static final int S_GENERATION = 4;
    static final int S_PID = 8;
    static final int S_CLAIMED_BOOT_NS = 16;
    static final int S_CLAIMED_TICK = 24;
    static final int S_IDENTITY_SEQ = 40;
    static final int S_MERGED = 44;
    static final int S_KIND = 48;
    static final int S_DATABASE = 112;
    static final int S_USER = 176;
    static final int S_APPLICATION = 240;
    static final int S_SESSIONS = 304;

    static final int FREE = 0;
    static final int CLAIMING = 1;
    static final int LIVE = 2;
    static final int RETIRED = 3;
    static final int MERGING = 4;
    static final int GROUP = 5;

    // A book.
    static final int BOOK_SIZE = 1024;
    static final int B_RUN = 8;
    static final int B_USED = 12;
    static final int B_RUN_START = 16;
    static final int B_PEND = 24;
    static final int B_RESETS = 28;
    static final int B_BORN = 40;

    // A head.
    static final int HEAD_SIZE = 64;
    static final int COUNT = 8;
    static final int TOTAL = 16;
    static final int MIN = 24;
    static final int MAX = 32;
    static final int RESERVED = 40;
    static final int AMOUNT = 48;
    static final int FOLLOWS = 56;

    /** The bits of the level word that are the level. */
    static final int LEVEL = 0xf;

    /** The number of resets in a level word. */
    static int resets(int word) {
        return word >>> 16;
    }

    // A ring of traces.
    static final int T_SIZE = 4096;
    static final int T_CLAIM = 0;
    static final int T_UNTIL = 24;
    static final int T_OWNER_PID = 256;
    static final int T_LEADER_PID = 260;
    static final int T_SLOT = 264;
    static final int T_SLOT_GENERATION = 268;
    static final int T_BEGUN = 272;
    static final int T_HEAD = 320;
    static final int T_RECORDS = 16384;
    static final int T_ARMED = 1;
    static final int T_RUNNING = 2;

    // A record of it.
    static final int R_SIZE = 64;
    static final int R_TICK = 8;
    static final int R_TICKS = 16;
    static final int R_KIND = 24;
    static final int R_OP = 25;
    static final int R_FAILED = 27;
    static final int R_STAT = 32;
    static final int R_NEXT = 36;
    static final int R_WORDS = 40;

    /** Statistics whose histograms lie together. */
    static final int CHUNK = 8;
    static final int OCTAVE = 8;
    static final int OCTAVES = HIST_BUCKETS / OCTAVE;
    /** Bytes from an octave of a histogram to its next. */
    static final int ROW_BYTES = CHUNK * OCTAVE * 8;
    static final int CHUNK_BYTES = OCTAVES * ROW_BYTES;

    /** No statistic. */
    static final int NONE = -1;

    private Layout() {
    }

    static long roundUp(long value, long unit) {
        return (value + unit - 1) / unit * unit;
    }

    /** Bytes of a book with this many statistics. */
    static int bookStride(int statistics) {
        long chunks = (statistics + CHUNK - 1) / CHUNK;
        return (int) roundUp(BOOK_SIZE + (long) statistics * HEAD_SIZE + chunks * CHUNK_BYTES, PAGE);
    }
}
