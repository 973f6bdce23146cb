// SPDX-License-Identifier: PostgreSQL
// A font whose letters are all the same box, so that pictures of pages do not depend on the fonts of a machine.

const UNITS = 1000;
/** Width of a letter, and the extent of its box. */
const WIDTH = 550;
const [LEFT, RIGHT, BOTTOM, TOP] = [60, 490, 0, 520];

const u16 = (...values) => Buffer.from(values.flatMap((value) => [(value >> 8) & 0xff, value & 0xff]));
const u32 = (...values) =>
    Buffer.concat(
        values.map((value) => {
            const bytes = Buffer.alloc(4);
            bytes.writeUInt32BE(value >>> 0);
            return bytes;
        }),
    );

function checksum(bytes) {
    let sum = 0;
    for (let at = 0; at < bytes.length; at += 4) {
        const word = Buffer.alloc(4);
        bytes.copy(word, 0, at, Math.min(at + 4, bytes.length));
        sum = (sum + word.readUInt32BE()) >>> 0;
    }
    return sum;
}

/** One contour of four points. */
function box() {
    const signed = (value) => u16(value & 0xffff);
    return Buffer.concat([
        u16(1, LEFT, BOTTOM, RIGHT, TOP),
        u16(3, 0),
        Buffer.from([1, 1, 1, 1]),
        ...[LEFT, 0, RIGHT - LEFT, 0].map(signed),
        ...[BOTTOM, TOP - BOTTOM, 0, BOTTOM - TOP].map(signed),
    ]);
}

function name() {
    const texts = [
        [1, "Boxes"],
        [2, "Regular"],
        [3, "Boxes"],
        [4, "Boxes"],
        [5, "Version 1"],
        [6, "Boxes"],
    ].map(([id, text]) => [id, Buffer.from(text, "utf16le").swap16()]);
    let at = 0;
    const records = texts.map(([id, text]) => {
        const record = u16(3, 1, 0x409, id, text.length, at);
        at += text.length;
        return record;
    });
    return Buffer.concat([u16(0, texts.length, 6 + 12 * texts.length), ...records, ...texts.map(([, text]) => text)]);
}

/** Blanks are glyph 1, all other characters glyph 2 (cmap, format 13: many to one). */
function characters() {
    const groups = [
        [0x20, 0x20, 1],
        [0x21, 0x9f, 2],
        [0xa0, 0xa0, 1],
        [0xa1, 0x10ffff, 2],
    ];
    const table = Buffer.concat([u16(13, 0), u32(16 + 12 * groups.length, 0, groups.length), ...groups.map((group) => u32(...group))]);
    return Buffer.concat([u16(0, 1), u16(3, 10), u32(12), table]);
}

/** The font, a TrueType file. */
export function boxes() {
    const glyph = box();
    const padded = Buffer.concat([glyph, Buffer.alloc((4 - (glyph.length % 4)) % 4)]);
    const metrics = u16(WIDTH, LEFT, WIDTH, 0, WIDTH, LEFT);
    const tables = {
        "OS/2": Buffer.concat([
            u16(4, WIDTH, 400, 5, 0, 650, 700, 0, 140, 650, 700, 0, 480, 50, 250, 0),
            Buffer.alloc(10),
            u32(1, 0, 0, 0),
            Buffer.from("none"),
            u16(0x40, 0x20, 0xffff, 800, 0xff38, 0, 800, 200),
            u32(1, 0),
            u16(520, 700, 0, 0x20, 1),
        ]),
        cmap: characters(),
        glyf: Buffer.concat([padded, padded]),
        head: Buffer.concat([
            u32(0x10000, 0x10000, 0, 0x5f0f3cf5),
            u16(3, UNITS),
            Buffer.alloc(16),
            u16(LEFT, BOTTOM, RIGHT, TOP, 0, 8, 2, 1, 0),
        ]),
        hhea: Buffer.concat([u32(0x10000), u16(800, 0xff38, 0, WIDTH, 0, 0, RIGHT, 1, 0, 0, 0, 0, 0, 0, 0, 3)]),
        hmtx: metrics,
        loca: u32(0, padded.length, padded.length, 2 * padded.length),
        maxp: Buffer.concat([u32(0x10000), u16(3, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0)]),
        name: name(),
        post: Buffer.concat([u32(0x30000, 0), u16(0xff9c, 50), u32(1, 0, 0, 0, 0)]),
    };
    const names = Object.keys(tables).sort();
    let at = 12 + 16 * names.length;
    const records = [];
    const bodies = [];
    for (const one of names) {
        const body = tables[one];
        const size = Math.ceil(body.length / 4) * 4;
        records.push(Buffer.from(one.padEnd(4)), u32(checksum(body), at, body.length));
        bodies.push(body, Buffer.alloc(size - body.length));
        at += size;
    }
    return Buffer.concat([u32(0x10000), u16(names.length, 128, 3, 16 * names.length - 128), ...records, ...bodies]);
}
