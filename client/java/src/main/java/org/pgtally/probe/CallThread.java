// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.ref.WeakReference;
import org.pgtally.segment.CallRing;

/**
 * The driver's work for one thread: at most one execution or fetch on the wire, and at most one method of a result. Work
 * that such a call causes in turn (a savepoint, the driver's own metadata queries) belongs to it.
 */
final class CallThread {
    private static final int REMEMBERED = 32;
    /** Of the methods of a first row, one in this many is timed, on average. */
    private static final int FIRST_ROWS = 32;

    private final Session session;
    private final BookOwner recorder;
    /** Statements of the driver's most recently used objects. */
    private final WeakReference<?>[] queries = new WeakReference<?>[REMEMBERED];
    private final SqlText[] statements = new SqlText[REMEMBERED];
    /** Hashes of their texts, which may differ in what is hidden. */
    private final int[] hashes = new int[REMEMBERED];
    private int place;
    private Wire lastWire;

    // The call on the wire.
    private Wire wire;
    private SqlText statement;
    private boolean executes;
    private boolean inTransaction;
    private int batch;
    private long parameters;
    private boolean copies;
    private long begin;
    private long first;
    private long waited;
    private int messages;
    private int trips;
    private long rows;
    /** The fetch size that the driver ignores; 0: none. */
    private int ignoredFetchSize;
    private int savepoints;
    private boolean sentSince;
    /** Messages sent, without COPY data, and how many the connection had sent before the first of them. */
    private int sent;
    private long sentBefore;
    /** Whether a reader had requested records when the call began, so that the following field is known. */
    private boolean traced;
    private long collectingBefore;
    /** The next byte is a message type. */
    private boolean typeFollows;
    /** The next integer is a message length. */
    private boolean lengthFollows;
    /** Reads from the socket are currently timed as one wait. */
    private boolean inWait;
    /** When it began, if it is a read of more bytes than the driver's buffer had, and how many it had. */
    private long moreSince;
    private int buffered;
    private long bytesSent;
    private long bytesReceived;

    /** Reads and writes of the socket, and calls of timed methods before it. */
    private int waits;
    private long enteredBefore;

    // The method of a result.
    /** {@link #identity} of the result; 0 if no call is timed. The result itself would be kept alive. */
    private long decodesOf;
    private int weight;
    private long decodeBegin;
    private long wireTime;
    private long wireTimeBefore;
    private long decodesEntered;
    private int inner;
    /** Calls of first rows until the next one that is timed. */
    private int untilTimed = 1;
    private long random = 0x9e3779b97f4a7c15L;
    /** Time taken off in excess of the time of a call and of those that it stands for, which is taken off the next one. */
    private long excess;
    private SqlText decodedOf;

    // A statement that is prepared or closed.
    private boolean prepares;
    private SqlText preparedOf;
    private long prepareWireTime;

    private boolean waitsForPool;

    CallThread(Session session, BookOwner recorder) {
        this.session = session;
        this.recorder = recorder;
    }

    // ---------------------------------------------------------------- on the wire

    /** False if it is part of another call. */
    boolean begins(Object executor, Object query, Object values, boolean ofTransaction, int ofBatch) {
        if (!mayBegin(executor)) {
            return false;
        }
        long hash = ofBatch == 0 ? Parameters.hash(values) : 0;
        start(executor, query == null ? null : statement(query), true);
        inTransaction = ofTransaction;
        batch = ofBatch;
        parameters = query == null ? hash : hash ^ (long) hashes[place] << 32;
        return true;
    }

    /** Types or further rows of a statement; without a query, the statement becomes known when the message is sent. */
    boolean beginsMore(Object executor, Object query) {
        if (!mayBegin(executor)) {
            return false;
        }
        start(executor, query == null ? null : statement(query), false);
        return true;
    }

    boolean beginsCopy(Object executor, String sql) {
        if (!mayBegin(executor)) {
            return false;
        }
        start(executor, sql == null ? null : session.texts.of(sql), sql != null);
        copies = true;
        if (sql != null) {
            wire.copied = statement;
            wire.copyCounted = false;
        } else {
            statement = wire.copied;
        }
        return true;
    }

    private boolean mayBegin(Object executor) {
        boolean on = recorder.isOn();
        if (!on) {
            Wires.missed(executor);
        }
        return on && wire == null;
    }

    private void start(Object executor, SqlText of, boolean isExecution) {
        Wire there = lastWire;
        if (there == null || there.executor.get() != executor) {
            there = Wires.of(executor);
            lastWire = there;
        }
        executes = isExecution;
        statement = of;
        batch = 0;
        copies = false;
        inTransaction = false;
        waits = 0;
        first = 0;
        waited = 0;
        messages = 0;
        trips = 0;
        rows = 0;
        ignoredFetchSize = 0;
        savepoints = 0;
        bytesSent = 0;
        bytesReceived = 0;
        sentSince = false;
        inWait = false;
        wire = there;
        there.begins();
        traced = session.segment.ring.isArmed();
        sent = 0;
        sentBefore = there.sent;
        if (traced) {
            collectingBefore = session.collecting();
        }
        enteredBefore = recorder.entered();
        begin = System.nanoTime();
    }

    void ends(boolean thrown) {
        long now = System.nanoTime();
        Wire there = wire;
        wire = null;
        there.ended(now);
        long elapsed = now - begin;
        wireTime += elapsed;
        if (traced) {
            session.segment.ring.call(executes ? CallRing.EXECUTE : CallRing.FETCH, begin, elapsed, thrown,
                    statement == null ? -1 : statement.statistic, there.pid, there.whole ? sentBefore + 1 : 0,
                    sent, (int) Math.min(rows, Integer.MAX_VALUE), session.collecting() - collectingBefore);
        }
        if (statement == null) {
            return;
        }
        long repeated = executes && !copies ? there.executed(statement, parameters, inTransaction, batch == 0 && !thrown) : 0;
        int all = executes && (savepoints > 0 || there.hasSavepoints()) ? there.savepoints(statement, savepoints) : 0;
        int savepointsSoFar = savepoints > 0 ? all : 0;
        CallBook calls = recorder.takeCalls();
        if (calls == null) {
            return;
        }
        try {
            int at = calls.at(statement);
            if (at > 0) {
                calls.book.begin();
                record(calls, at, Math.max(elapsed - ownTime(), waited), thrown);
                if (savepointsSoFar > 0) {
                    calls.book.addPlain(at + CallBook.SAVEPOINT, savepointsSoFar);
                }
                if (repeated != 0) {
                    calls.book.addPart(at + CallBook.REPEATED, (int) repeated, repeated >>> Integer.SIZE);
                }
                calls.book.publish();
            }
        } finally {
            recorder.giveCalls(calls);
        }
    }

    /** What the probes themselves took of the call that has just ended, ns. */
    private long ownTime() {
        OwnTime own = session.ownTime();
        return (long) (own.clock + waits * own.wait + messages * own.message
                + (recorder.entered() - enteredBefore) * own.method);
    }

    private void record(CallBook calls, int at, long elapsed, boolean thrown) {
        if (executes) {
            calls.addTime(at + CallBook.EXECUTE, elapsed);
            if (first != 0) {
                // A part of it, from which the agent's own work is taken off.
                calls.book.addPlain(at + CallBook.FIRST, Math.min(first - begin, elapsed));
            }
            if (batch > 0) {
                calls.book.addPlain(at + CallBook.BATCH, batch);
            }
        } else {
            calls.book.addPlain(at + CallBook.FETCH, elapsed);
        }
        calls.book.addPlain(at + CallBook.WAIT, waited);
        calls.book.addPlain(at + CallBook.ROWS, rows);
        calls.book.addPlain(at + CallBook.MESSAGES, messages);
        calls.book.addPlain(at + CallBook.TRIPS, trips);
        calls.book.addPlain(at + CallBook.SENT, bytesSent);
        calls.book.addPlain(at + CallBook.RECEIVED, bytesReceived);
        if (thrown) {
            calls.book.addPlain(at + CallBook.FAILED, elapsed);
        }
        if (ignoredFetchSize > 0 && rows > ignoredFetchSize) {
            calls.book.addPlain(at + CallBook.UNFETCHED, rows);
        }
    }

    /** A message may be sent; returns the argument for {@link #sent}. */
    boolean sends() {
        boolean before = typeFollows;
        typeFollows = true;
        return before;
    }

    void sent(boolean before) {
        typeFollows = before;
    }

    /** A byte is sent; the first byte of a message is its type. */
    void byteSent(int value) {
        if (!typeFollows) {
            return;
        }
        typeFollows = false;
        Wire there = wire;
        if (there == null) {
            return;
        }
        lengthFollows = true;
        messages++;
        sentSince = true;
        if (value != 'd' && value != 'c' && value != 'f') {
            if (sent++ == 0) {
                // Only from now on does the driver surely hold the connection's lock.
                sentBefore = there.sent;
            }
            there.sent++;
        }
    }

    /** An integer is sent; after a message's type it is the length, which does not include the type. */
    void integerSent(int value) {
        if (lengthFollows) {
            lengthFollows = false;
            bytesSent += value + 1L;
        }
    }

    /** The statement of a cursor whose rows are fetched. */
    void cursorOf(Object query) {
        if (wire != null && statement == null && !executes) {
            statement = statement(query);
        }
    }

    /** 0 if nothing is measured, or it is part of another wait. */
    long waits(boolean reads) {
        if (wire == null || inWait) {
            return 0;
        }
        inWait = true;
        if (reads && sentSince) {
            trips++;
            sentSince = false;
        }
        return System.nanoTime();
    }

    void waited(long since, boolean reads, int bytes) {
        if (since != 0 && inWait) {
            inWait = false;
            bytesReceived += bytes;
            long now = System.nanoTime();
            waits++;
            waited += Math.max(now - since - (long) session.ownTime().clock, 0);
            if (traced) {
                session.segment.ring.waited(since, now - since, wire.pid, wire.whole ? sentBefore + 1 : 0);
            }
            if (reads && first == 0) {
                first = now;
            }
        }
    }

    /** A read of more bytes than the driver's buffer has begins. False if it is not timed, or is already. */
    boolean waitsForMore(int there) {
        long since = waits(true);
        if (since == 0) {
            return false;
        }
        moreSince = since;
        buffered = there;
        return true;
    }

    void gotMore(int bytes, int left) {
        waited(moreSince, true, Math.max(left - buffered + Math.max(bytes, 0), 0));
    }

    void rows(int count) {
        rows += count;
    }

    /** The COPY has so many rows; negative: that is not known yet. */
    void copied(long all) {
        Wire there = wire;
        if (all >= 0 && there != null && !there.copyCounted) {
            there.copyCounted = true;
            rows += all;
        }
    }

    /** The driver receives all rows of this call at once, although it has been told to fetch so many at a time. */
    void ignoresFetchSize(int size) {
        ignoredFetchSize = size;
    }

    /** The driver sets a savepoint before it sends the statement. */
    void savepoint() {
        savepoints++;
    }

    // ---------------------------------------------------------------- results

    /**
     * False if it is not timed, for example because it is called by another method of the result.
     *
     * @param of the number of calls that it stands for; 0 if it is a method of a first row, of which some are timed
     */
    boolean decodes(Object result, int of) {
        // The first hash of an object takes a call into the virtual machine.
        if (decodesOf != 0 && decodesOf == identity(result)) {
            inner++;
            return false;
        }
        return of > 0 ? beginsDecoding(result, of) : --untilTimed == 0 && beginsDecoding(result, FIRST_ROWS);
    }

    private static long identity(Object result) {
        return 1L << Integer.SIZE | System.identityHashCode(result);
    }

    /** A call that has failed before it was {@link #decoded} is forgotten. */
    boolean beginsDecoding(Object result, int of) {
        if (of == FIRST_ROWS) {
            random = random * 0x5851f42d4c957f2dL + 0x14057b7ef767814fL;
            // From 1 to twice the mean, less 1.
            untilTimed = 1 + (int) ((random >>> 33) % (2 * FIRST_ROWS - 1));
        }
        if (!recorder.isOn()) {
            return false;
        }
        decodesOf = identity(result);
        weight = of;
        inner = 0;
        wireTimeBefore = wireTime;
        decodesEntered = recorder.entered();
        decodeBegin = System.nanoTime();
        return true;
    }

    void decoded(Object query) {
        long now = System.nanoTime();
        if (decodesOf == 0) {
            return;
        }
        decodesOf = 0;
        if (query == null) {
            return;
        }
        SqlText text = statement(query);
        if (text != decodedOf) {
            decodedOf = text;
            excess = 0;
        }
        OwnTime own = session.ownTime();
        long elapsed = now - decodeBegin - (wireTime - wireTimeBefore) - excess / weight
                - (long) (own.clock + inner * own.inner + (recorder.entered() - decodesEntered) * own.method);
        excess = elapsed < 0 ? -elapsed * weight : 0;
        CallBook calls = recorder.takeCalls();
        if (calls == null) {
            return;
        }
        try {
            int at = calls.at(text);
            if (at > 0) {
                calls.book.begin();
                calls.book.addSample(at + CallBook.DECODE, Math.max(elapsed, 0), weight);
                calls.book.publish();
            }
        } finally {
            recorder.giveCalls(calls);
        }
    }

    // ---------------------------------------------------------------- prepared statements

    /** 0 if it is part of other such work, or nothing is measured. */
    long prepares() {
        if (prepares || !recorder.isOn()) {
            return 0;
        }
        prepares = true;
        preparedOf = null;
        prepareWireTime = wireTime;
        return System.nanoTime();
    }

    /** The work is for this statement. */
    void preparesOf(Object query) {
        if (prepares && query != null) {
            preparedOf = statement(query);
        }
    }

    /** If no statement was named, nothing is charged. */
    void prepared(long since, boolean closes) {
        if (since == 0) {
            return;
        }
        prepares = false;
        if (preparedOf == null) {
            return;
        }
        long elapsed = System.nanoTime() - since - (wireTime - prepareWireTime);
        CallBook calls = recorder.takeCalls();
        if (calls == null) {
            return;
        }
        try {
            int at = calls.at(preparedOf);
            if (at > 0) {
                calls.book.begin();
                calls.book.addPlain(at + (closes ? CallBook.CLOSE : CallBook.PREPARE), elapsed);
                calls.book.publish();
            }
        } finally {
            recorder.giveCalls(calls);
        }
    }

    // ---------------------------------------------------------------- the pool

    /** 0 if another pool that waits for this one is already measured. */
    long waitsForPool() {
        if (waitsForPool || !recorder.isOn()) {
            return 0;
        }
        waitsForPool = true;
        return System.nanoTime();
    }

    void waitedForPool(long since, boolean thrown) {
        if (since == 0) {
            return;
        }
        waitsForPool = false;
        long elapsed = System.nanoTime() - since;
        CallBook calls = recorder.takeCalls();
        if (calls == null) {
            return;
        }
        try {
            int at = calls.poolWait();
            if (at > 0) {
                calls.book.begin();
                calls.addTime(at, elapsed);
                calls.book.publish();
            }
            int failed = thrown ? calls.poolFailed() : 0;
            if (failed > 0) {
                calls.book.begin();
                calls.addTime(failed, elapsed);
                calls.book.publish();
            }
        } finally {
            recorder.giveCalls(calls);
        }
    }

    /** The statement of a driver's object. Sets {@link #place}. */
    private SqlText statement(Object query) {
        place = System.identityHashCode(query) & REMEMBERED - 1;
        WeakReference<?> there = queries[place];
        if (there == null || there.get() != query) {
            String text = Secrets.withoutOuterComments(String.valueOf(query));
            statements[place] = session.texts.ofBare(text);
            hashes[place] = text.hashCode();
            queries[place] = new WeakReference<>(query);
        }
        return statements[place];
    }
}
