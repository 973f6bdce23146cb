// SPDX-License-Identifier: PostgreSQL
/**
 * The source of the report: the page contains one. A live report has a URL on the same server for newer
 * ones.
 */
import type { Report } from "./model";
import { parse } from "./visible";

/** The first report, and newer ones. */
export interface Source {
    readonly first: Report;
    /**
     * Calls `next` with each newer report, and `lost` with an error, or with null when that is over. Reports have the tables over
     * time if `parts` says so.
     */
    follow(next: (report: Report) => void, lost: (why: string | null) => void, parts: () => boolean): void;
}

const VERSION = 1;

/** The report in the page. Throws an error with a readable message if the page cannot draw it. */
export function embedded(): Source {
    const report = parse(document.getElementById("report")?.textContent ?? "null") as Report | null;
    if (report?.format !== "pgtally report") throw new Error("This page contains no report.");
    if (report.version > VERSION) {
        throw new Error(
            `The report has version ${report.version}; this page supports versions up to ${VERSION}.`,
        );
    }
    const { live } = report;
    if (!live) return { first: report, follow: () => undefined };
    const seconds = live.seconds ?? report.measured.interval_seconds;
    const known = report.parts !== undefined;
    return {
        first: report,
        follow: (next, lost, parts) => poll(() => (known && parts() ? `${live.url}?parts` : live.url), seconds, next, lost),
    };
}

/** Polls at that interval in seconds, while the page is visible. */
function poll(
    url: () => string,
    seconds: number,
    next: (report: Report) => void,
    lost: (why: string | null) => void,
): void {
    const pause = Math.max(seconds, 0.5) * 1000;
    let latest = "";
    const ask = async (): Promise<void> => {
        try {
            const answer = await fetch(url(), { cache: "no-cache" });
            if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
            const text = await answer.text();
            if (text !== latest) next(parse(text) as Report);
            latest = text;
            lost(null);
        } catch (error) {
            lost(`No data from the server: ${error instanceof Error ? error.message : String(error)}.`);
        }
    };
    const round = (): void => {
        void (document.hidden ? Promise.resolve() : ask()).then(() => setTimeout(round, pause));
    };
    setTimeout(round, pause);
}
