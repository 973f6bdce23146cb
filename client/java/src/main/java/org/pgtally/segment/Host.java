// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Information from /proc about this machine and this process. */
final class Host {
    private Host() {
    }

    /** The boot id of this machine, or empty. */
    static String bootId() {
        return read("/proc/sys/kernel/random/boot_id").trim();
    }

    /** The inode of this process's pid namespace; 0 if unknown. */
    static long pidNamespace() {
        try {
            String link = Files.readSymbolicLink(Path.of("/proc/self/ns/pid")).toString();
            return Long.parseLong(link.substring(link.indexOf('[') + 1, link.indexOf(']')));
        } catch (IOException | RuntimeException e) {
            return 0;
        }
    }

    /** The kernel's id of the calling thread, or of its process if that is unknown. */
    static int threadId() {
        try {
            Path link = Files.readSymbolicLink(Path.of("/proc/thread-self"));
            return Integer.parseInt(link.getFileName().toString());
        } catch (IOException | RuntimeException e) {
            return (int) ProcessHandle.current().pid();
        }
    }

    /** When a process started, in clock ticks since boot; 0 if there is none with this pid, it has ended, or that is unknown. */
    static long started(long pid) {
        String text = read("/proc/" + pid + "/stat");
        // The name in parentheses may contain anything. The next field is the 3rd.
        String[] fields = text.substring(text.lastIndexOf(')') + 1).trim().split(" ");
        try {
            return fields[0].equals("Z") || fields[0].equals("X") ? 0 : Long.parseLong(fields[19]);
        } catch (RuntimeException e) {
            return 0;
        }
    }

    /** Nanoseconds since boot, with a resolution of 10 ms. Java cannot read CLOCK_BOOTTIME. */
    static long bootNs() {
        String text = read("/proc/uptime");
        try {
            String seconds = text.substring(0, text.indexOf(' '));
            int point = seconds.indexOf('.');
            return Long.parseLong(seconds.substring(0, point)) * 1_000_000_000L
                    + Long.parseLong(seconds.substring(point + 1)) * 10_000_000L;
        } catch (RuntimeException e) {
            return System.nanoTime();
        }
    }

    private static String read(String file) {
        try {
            return Files.readString(Path.of(file));
        } catch (IOException e) {
            return "";
        }
    }
}
