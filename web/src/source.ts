// SPDX-License-Identifier: PostgreSQL
/**
 * Where the report comes from: the page has one in it. A live one names the place, on the server
 * that the page came from, that has the newer ones.
 */
import type { Report } from "./model";
import { parse } from "./visible";

/** The first report, and whatever follows it. */
export interface Source {
    readonly first: Report;
    /** Calls back with each newer report; `lost` with what is wrong, or null once it is well again. */
    follow(next: (report: Report) => void, lost: (why: string | null) => void): void;
}

const VERSION = 1;

/** The report in the page. Throws a sentence if there is none that this page can draw. */
export function embedded(): Source {
    const report = parse(document.getElementById("report")?.textContent ?? "null") as Report | null;
    if (report?.format !== "pgtally report") throw new Error("This page has no report in it.");
    if (report.version > VERSION) {
        throw new Error(
            `The report is of version ${report.version}, and this page draws up to version ${VERSION}.`,
        );
    }
    const { live } = report;
    return live
        ? { first: report, follow: (next, lost) => poll(live.url, report, next, lost) }
        : { first: report, follow: () => undefined };
}

/** Asks again and again, at the pace of the recording, and only while the page is looked at. */
function poll(
    url: string,
    first: Report,
    next: (report: Report) => void,
    lost: (why: string | null) => void,
): void {
    const pause = Math.max(first.measured.interval_seconds, 0.5) * 1000;
    const ask = async (): Promise<void> => {
        try {
            const answer = await fetch(url, { cache: "no-cache" });
            if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
            next(parse(await answer.text()) as Report);
            lost(null);
        } catch (error) {
            lost(`No news from the server: ${error instanceof Error ? error.message : String(error)}.`);
        }
    };
    const round = (): void => {
        void (document.hidden ? Promise.resolve() : ask()).then(() => setTimeout(round, pause));
    };
    setTimeout(round, pause);
}
