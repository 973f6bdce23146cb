// SPDX-License-Identifier: PostgreSQL
/** One of the two graphs of a profile: its heading with unit and totals, and its frames. */
import { element } from "../dom";
import { CLASSES, CLASS_NAMES } from "../look/palette";
import { duration, percent, whole } from "../units";
import { draw, followKeys, foundIn } from "./draw";
import type { Profile } from "./model";
import { halfWidth, period, timeByColour, treeOf, type Node, type Options, type Part } from "./tree";

/** What both panels show. */
export type Settings = Omit<Options, "part"> & {
    readonly rootOnTop: boolean;
    /** In lower case; empty if nothing is searched for. */
    readonly wanted: string;
};

const TITLES: Readonly<Record<Part, string>> = { cpu: "On CPU", off: "Off CPU" };

export class Panel {
    readonly root = element("section", { class: "panel" });
    private readonly totals = element("span", { class: "totals" });
    private readonly legend = element("ul", { class: "legend", "aria-label": "Colours" });
    private readonly graph: HTMLElement;
    private settings: Settings | undefined;
    private tree: Node;
    private path: readonly Node[] = [];

    constructor(
        private readonly profile: Profile,
        readonly part: Part,
        private readonly describe: (text: string) => void,
    ) {
        const title = TITLES[part];
        this.tree = treeOf(profile, { part, grouping: "function", idle: true, inverted: false });
        this.graph = element("div", { class: "flames", role: "tree", "aria-label": `${title}, by time` });
        this.root.append(element("h2", {}, title, " ", this.totals), this.legend, this.graph);
        followKeys(this.graph, () => this.settings?.rootOnTop ?? true);
    }

    /** The whole tree, and the time that was found in it. */
    show(settings: Settings): { tree: Node; found: number } {
        const { settings: before } = this;
        const same = before && (["grouping", "idle", "inverted"] as const).every((one) => before[one] === settings[one]);
        this.settings = settings;
        if (!same) {
            this.tree = treeOf(this.profile, { ...settings, part: this.part });
            this.path = [this.tree];
            this.writeLegend(settings.inverted);
        }
        this.redraw();
        return { tree: this.tree, found: settings.wanted === "" ? 0 : foundIn(this.tree, this.isFound) };
    }

    whole(): void {
        this.path = [this.tree];
        this.redraw();
    }

    /** The classes in the graph with their times, and the part of each that is the kernel's. */
    private writeLegend(inverted: boolean): void {
        const times = timeByColour(this.tree, inverted);
        const entries = CLASSES.flatMap((one) => {
            const [own = 0, kernel = 0] = [times.get(one), times.get(`${one}-2`)];
            if (own + kernel <= 0) return [];
            const dot = (colour: string): HTMLElement => element("i", { class: `dot of-${colour}` });
            const dots = kernel > 0 ? [dot(one), dot(`${one}-2`)] : [dot(one)];
            const part = kernel > 0 ? ` (kernel ${duration(kernel)})` : "";
            return [element("li", {}, ...dots, `${CLASS_NAMES[one]} `, element("b", {}, duration(own + kernel)), part)];
        });
        this.legend.replaceChildren(...entries);
    }

    private readonly isFound = ({ name, from }: Node): boolean => {
        const wanted = this.settings?.wanted ?? "";
        return wanted !== "" && `${name} ${from}`.toLowerCase().includes(wanted);
    };

    private redraw(): void {
        const { tree, profile, part, graph } = this;
        const each = period(profile, part);
        this.totals.textContent =
            `${this.time(tree)}, ${whole(tree.samples)} samples, one each ${duration(each)} ` +
            (part === "cpu" ? "of a CPU" : "of a session");
        graph.classList.toggle("searching", (this.settings?.wanted ?? "") !== "");
        const rows = draw(graph, {
            path: this.path,
            rootOnTop: this.settings?.rootOnTop ?? true,
            found: this.isFound,
            zoom: (path) => {
                this.path = path;
                this.redraw();
                graph.querySelector<HTMLElement>(`[aria-level="${path.length}"]`)?.focus();
            },
            point: (path) => this.point(path),
        });
        if (rows === 0) graph.append(element("p", { class: "nothing" }, "No samples."));
    }

    /** "1.24 s ± 0.11 s". */
    private time({ seconds, samples }: Node): string {
        return `${duration(seconds)} ± ${duration(halfWidth(samples, period(this.profile, this.part)))}`;
    }

    private point(path: readonly Node[] | null): void {
        const node = path?.[path.length - 1];
        if (node === undefined) return this.describe("");
        const { name, from, seconds, samples } = node;
        const share = this.tree.seconds > 0 ? seconds / this.tree.seconds : 0;
        const figures = [
            this.time(node),
            `${percent(share)} of the time ${TITLES[this.part].toLowerCase().replace("cpu", "CPU")}`,
            `${whole(samples)} ${samples === 1 ? "sample" : "samples"}`,
        ];
        this.describe(`${name}${from === "" ? "" : ` (${from})`}: ${figures.join(", ")}`);
    }
}
