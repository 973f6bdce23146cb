// SPDX-License-Identifier: PostgreSQL
/** A profile: two flame graphs with legend, search, zoom and groupings, above the tables as text. */
import { button, element } from "../dom";
import { followTheme } from "../look/theme";
import { themeButton } from "../toolbar";
import { duration, percent, whole } from "../units";
import { choice, LAYOUTS, type Layout } from "./controls";
import type { Profile } from "./model";
import { Panel, type Settings } from "./panel";
import type { Grouping } from "./tree";

const GROUPINGS: readonly (readonly [Grouping, string])[] = [
    ["phase", "phase, activity"],
    ["activity", "activity, phase"],
    ["statement", "statement"],
    ["function", "functions only"],
];

export function showProfile(profile: Profile, into: HTMLElement): void {
    let settings: Settings = { grouping: "phase", idle: false, inverted: false, rootOnTop: true, wanted: "" };

    const status = element("output", { class: "status" });
    const HINT = "Point at a frame for its figures; click to zoom in. Arrow keys move, Enter zooms, Esc shows all.";
    const describe = (text: string): void => {
        status.value = text || HINT;
        status.title = text;
    };
    const panels = [new Panel(profile, "off", describe), new Panel(profile, "cpu", describe)];
    const matches = element("output", { class: "matches" });

    function show(): void {
        const drawn = panels.map((panel) => panel.show(settings));
        const total = drawn.reduce((sum, { tree }) => sum + tree.seconds, 0);
        const found = drawn.reduce((sum, one) => sum + one.found, 0);
        matches.value =
            settings.wanted === ""
                ? ""
                : `matched: ${duration(found)}, ${percent(total > 0 ? found / total : 0)} ` +
                  `(${panels.map(({ part }, i) => `${part === "cpu" ? "on" : "off"} CPU ${duration(drawn[i]?.found ?? 0)}`).join(", ")})`;
        describe("");
    }

    function change(to: Partial<Settings>): void {
        settings = { ...settings, ...to };
        show();
    }

    const idle = element("input", { type: "checkbox" });
    idle.addEventListener("change", () => change({ idle: idle.checked }));
    const search = element("input", { type: "search", placeholder: "Search", "aria-label": "Search" });
    search.addEventListener("input", () => change({ wanted: search.value.trim().toLowerCase() }));
    const all = (): void => panels.forEach((panel) => panel.whole());
    addEventListener("keydown", (event) => {
        if (event.key === "Escape") all();
    });

    const layouts = Object.entries(LAYOUTS).map(([name, { label }]) => [name as Layout, label] as const);
    const facts = [
        ["Duration", duration(profile.seconds)],
        ["Sampling", `${whole(profile.hertz)} Hz, each CPU and each session`],
        ["Processes", profile.scope === "system" ? "all of the machine" : "of the server"],
        ["Kernel", profile.kernel ? "sampled" : "not sampled"],
    ].map(([name, text]) => element("div", {}, element("dt", {}, name ?? ""), element("dd", {}, text ?? "")));
    document.documentElement.classList.add("scripted");
    const themed = { theme: undefined, setTheme: () => undefined };
    followTheme(themed);
    into.append(
        element("dl", { class: "facts-line" }, ...facts),
        element(
            "div",
            { class: "controls" },
            choice("Group by", GROUPINGS, (grouping) => change({ grouping })),
            choice("Layout", layouts, (name) => change({ rootOnTop: LAYOUTS[name].rootOnTop, inverted: LAYOUTS[name].inverted })),
            element("label", {}, idle, " idle sessions"),
            search,
            matches,
            button("Show all", "Zoom out to the whole graphs (Esc)", all),
            themeButton(themed),
        ),
        ...panels.map(({ root }) => root),
        status,
    );
    show();
}
