// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import static org.pgtally.test.Units.equal;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.reflect.Constructor;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

final class AgentTest {
    private AgentTest() {
    }

    private static String matching(Glob glob) {
        List<String> found = new ArrayList<>();
        for (String type : List.of("a.B", "a.b.B", "a.BC", "aXB", "a.B$C")) {
            for (String method : List.of("find", "findAll", "get")) {
                if (glob.matches(type, method, false)) {
                    found.add(type + "#" + method);
                }
            }
        }
        return String.join(" ", found);
    }

    static void patternsMatchClassesAndMethods() {
        equal("a.B#find a.B#findAll a.B#get", matching(Glob.of("a.B")), "a class");
        equal("a.B#find", matching(Glob.of("a.B#find")), "a method");
        equal("a.B#findAll", matching(Glob.of("a.B#find?*")), "a letter and more");
        equal("a.B#find a.BC#find a.B$C#find", matching(Glob.of("a.*#find")), "one package");
        equal("a.B#get a.b.B#get", matching(Glob.of("**.B#g*")), "any package");
        equal("a.BC#find", matching(Glob.of("?.??#find")), "letters, no dot");
        equal("a.B$C#get", matching(Glob.of("a.B$*#get")), "a class within one");
        equal("", matching(Glob.ofPublic("**")), "no method that is not public");
        equal(true, Glob.ofPublic("a.*").matches("a.B", "get", true), "a public method");
        for (String wrong : List.of("", "#get", "a.B#", "a#b#c")) {
            try {
                Glob.of(wrong);
                throw new AssertionError(wrong + " is taken");
            } catch (IllegalArgumentException e) {
                equal(true, e.getMessage().startsWith("\"" + wrong + "\" is not a pattern"), e.getMessage());
            }
        }
    }

    private static String shown(String text) {
        Options options = Options.parse(text);
        return (options.off ? "off " : "") + (options.calls ? "calls " : "") + (options.cpu ? "cpu " : "") + (options.edges ? "edges " : "")
                + (options.histograms ? "histograms " : "") + (options.keep ? "keep " : "") + options.threads + " " + options.statistics
                + " " + options.file.toString().replace(String.valueOf(ProcessHandle.current().pid()), "PID");
    }

    static void optionsAreWhatTheTextSays() {
        String file = " /dev/shm/pg_tally.java.PID";
        equal("calls histograms 256 4096" + file, shown(null), "none");
        equal("calls histograms 256 4096" + file, shown(" , "), "blanks");
        equal("cpu edges keep 1 64 /x/pg_tally.java.PID",
                shown("calls=off,cpu,edges=on, histograms=false ,keep=true,threads=1,statistics=64,directory=/x"), "all");
        equal("calls histograms 4096 4096 /a/b", shown("threads=4096,statistics=4096,file=/a/b"), "the largest");
        equal("off calls histograms 256 4096" + file, shown("off"), "off");
        for (String wrong : List.of("threads=0", "threads=4097", "threads=x", "statistics=63", "statistics=4097",
                "cpu=1", "colour=red", "methods=a#b#c")) {
            try {
                Options.parse(wrong);
                throw new AssertionError(wrong + " is taken");
            } catch (IllegalArgumentException e) {
                equal(true, e.getMessage().contains(wrong.substring(wrong.indexOf('=') + 1))
                        || e.getMessage().contains("\"colour\""), e.getMessage());
            }
        }
        List<String> driver = Options.parse("").methods.stream().map(Glob::toString).collect(Collectors.toList());
        List<String> more = Options.parse("methods=a.B:driver:c.D").methods.stream().map(Glob::toString)
                .collect(Collectors.toList());
        equal("a.B", more.get(0), "first");
        equal(driver, more.subList(1, more.size() - 1), "the driver's in between");
        equal("c.D", more.get(more.size() - 1), "last");
        List<Glob> all = Options.parse("methods=driver-all").methods;
        for (String method : List.of("next", "getInt", "close")) {
            equal("false true", matches(Options.parse("").methods, method) + " " + matches(all, method), method);
        }
    }

    private static boolean matches(List<Glob> globs, String method) {
        return globs.stream().anyMatch(glob -> glob.matches("org.postgresql.jdbc.PgResultSet", method, true));
    }

    @SuppressWarnings("unchecked")
    private static <T> T answering(Class<T> type, Map<String, Object> answers, List<Object> added) {
        return (T) Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
            if (method.getName().equals("addTransformer")) {
                added.add(arguments[0]);
            } else if (method.getName().equals("removeTransformer")) {
                return added.remove(arguments[0]);
            }
            return answers.get(method.getName());
        });
    }

    static void whatFollowsAllAgentsRunsOnceWhenTheLauncherIsLoaded() throws Exception {
        List<Object> added = new ArrayList<>();
        int[] runs = {0};
        AfterAgents.run(answering(Instrumentation.class, Map.of(), added), () -> runs[0]++);
        ClassFileTransformer transformer = (ClassFileTransformer) added.get(0);
        for (String name : new String[] {"a/B", null, "sun/launcher/LauncherHelper$Other"}) {
            equal(null, transformer.transform(null, name, null, null, new byte[0]), "the class is as it was");
        }
        equal("0 1", runs[0] + " " + added.size(), "runs before, transformers");
        equal(null, transformer.transform(null, "sun/launcher/LauncherHelper", null, null, new byte[0]), "the same");
        equal("1 0", runs[0] + " " + added.size(), "runs after, transformers");
    }

    private static CollectionPauses shenandoah(long pauses, long ms) throws Exception {
        Constructor<?> constructor = Class.forName("org.pgtally.agent.CollectionPauses$OfShenandoah")
                .getDeclaredConstructor(GarbageCollectorMXBean.class);
        constructor.setAccessible(true);
        Map<String, Object> answers = Map.of("getCollectionCount", pauses, "getCollectionTime", ms);
        return (CollectionPauses) constructor
                .newInstance(answering(GarbageCollectorMXBean.class, answers, new ArrayList<>()));
    }

    static void pausesOfShenandoahAreTheirPartOfTheMillisecond() throws Exception {
        CollectionPauses pauses = shenandoah(3, 7);
        equal(3L, pauses.count(), "how many");
        equal(7_500_000L, pauses.time(6, 15_000_000), "half of the safepoints");
        equal(7_000_000L, pauses.time(6, 2_000_000), "not less than the whole milliseconds");
        equal(7_999_999L, pauses.time(6, 30_000_000), "nor a millisecond more");
        equal(7_000_000L, pauses.time(0, 0), "without any safepoint");
        equal(9L, pauses.atOnce(9), "at once");
    }
}
