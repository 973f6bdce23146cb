// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.FilterInputStream;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicLong;
import javax.net.SocketFactory;

/**
 * Counts the bytes that a driver sends and receives after the start of a session, without the messages that end sessions, as a
 * reference. Follows the messages of the protocol by their lengths.
 */
public final class CountingSockets extends SocketFactory {
    static final AtomicLong SENT = new AtomicLong();
    static final AtomicLong RECEIVED = new AtomicLong();

    /** Follows messages: a type, and a length that includes itself. */
    private static final class Messages {
        private final AtomicLong sum;
        private final boolean fromServer;
        /** A client's first message has no type. A server's messages before it is ready do not count. */
        private boolean starts = true;
        private int type;
        private long length;
        private int position;

        Messages(AtomicLong sum, boolean fromServer) {
            this.sum = sum;
            this.fromServer = fromServer;
            begin();
        }

        private void begin() {
            position = starts && !fromServer ? 1 : 0;
            length = 0;
        }

        void add(int value) {
            if (position == 0) {
                type = value;
            } else if (position <= 4) {
                length = length << 8 | value;
            }
            position++;
            if (position > 4 && position == length + 1) {
                // 'p': a client's answer to the request for a password.
                if (!starts && (fromServer || type != 'X' && type != 'p')) {
                    sum.addAndGet(position);
                }
                starts &= fromServer && type != 'Z';
                begin();
            }
        }
    }

    private static final class Counted extends Socket {
        private final Messages out = new Messages(SENT, false);
        private final Messages in = new Messages(RECEIVED, true);

        @Override
        public OutputStream getOutputStream() throws IOException {
            return new FilterOutputStream(super.getOutputStream()) {
                @Override
                public void write(int value) throws IOException {
                    write(new byte[] {(byte) value}, 0, 1);
                }

                @Override
                public void write(byte[] bytes, int from, int length) throws IOException {
                    for (int at = from; at < from + length; at++) {
                        Counted.this.out.add(bytes[at] & 0xff);
                    }
                    super.out.write(bytes, from, length);
                }
            };
        }

        @Override
        public InputStream getInputStream() throws IOException {
            return new FilterInputStream(super.getInputStream()) {
                @Override
                public int read() throws IOException {
                    byte[] one = new byte[1];
                    return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
                }

                @Override
                public int read(byte[] bytes, int from, int length) throws IOException {
                    int count = super.in.read(bytes, from, length);
                    for (int at = from; at < from + count; at++) {
                        Counted.this.in.add(bytes[at] & 0xff);
                    }
                    return count;
                }
            };
        }
    }

    @Override
    public Socket createSocket() {
        return new Counted();
    }

    @Override
    public Socket createSocket(String host, int port) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress local, int localPort) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Socket createSocket(InetAddress host, int port) {
        throw new UnsupportedOperationException();
    }

    @Override
    public Socket createSocket(InetAddress host, int port, InetAddress local, int localPort) {
        throw new UnsupportedOperationException();
    }
}
