// SPDX-License-Identifier: PostgreSQL
//! Decodes texts in the encodings of a server's databases.

use std::borrow::Cow;

use encoding_rs::{
    Encoding, EUC_JP, EUC_KR, GBK, IBM866, ISO_8859_10, ISO_8859_13, ISO_8859_14, ISO_8859_15,
    ISO_8859_16, ISO_8859_2, ISO_8859_3, ISO_8859_4, ISO_8859_5, ISO_8859_6, ISO_8859_7,
    ISO_8859_8, KOI8_R, KOI8_U, WINDOWS_1250, WINDOWS_1251, WINDOWS_1252, WINDOWS_1253,
    WINDOWS_1254, WINDOWS_1255, WINDOWS_1256, WINDOWS_1257, WINDOWS_1258, WINDOWS_874,
};

/// PostgreSQL's numbers of encodings (`mb/pg_wchar.h`), which never change.
mod number {
    pub const EUC_TW: i32 = 4;
    pub const MULE_INTERNAL: i32 = 7;
    pub const LATIN1: i32 = 8;
}

/// The decoder for an encoding other than UTF-8 and LATIN1. Some decoders support characters that the server's encoding
/// does not have.
fn decoder(encoding: i32) -> Option<&'static Encoding> {
    Some(match encoding {
        // EUC_JIS_2004 has additional characters at code points that EUC_JP does not use.
        1 | 5 => EUC_JP,
        2 => GBK,
        3 => EUC_KR,
        9 => ISO_8859_2,
        10 => ISO_8859_3,
        11 => ISO_8859_4,
        // LATIN5, ISO 8859-9
        12 | 31 => WINDOWS_1254,
        13 => ISO_8859_10,
        14 => ISO_8859_13,
        15 => ISO_8859_14,
        16 => ISO_8859_15,
        17 => ISO_8859_16,
        18 => WINDOWS_1256,
        19 => WINDOWS_1258,
        20 => IBM866,
        21 => WINDOWS_874,
        22 => KOI8_R,
        23 => WINDOWS_1251,
        24 => WINDOWS_1252,
        25 => ISO_8859_5,
        26 => ISO_8859_6,
        27 => ISO_8859_7,
        28 => ISO_8859_8,
        29 => WINDOWS_1250,
        30 => WINDOWS_1253,
        32 => WINDOWS_1255,
        33 => WINDOWS_1257,
        34 => KOI8_U,
        _ => return None,
    })
}

/// Decodes a text of a database with this encoding (PostgreSQL's number); unknown numbers are treated as UTF-8. A
/// partial character at the end is removed, because the text was truncated there. Bytes that are not a character, and
/// encodings that are not supported, become replacement characters.
pub fn decode(bytes: &[u8], encoding: i32) -> Cow<'_, str> {
    match encoding {
        number::LATIN1 => bytes.iter().map(|&byte| char::from(byte)).collect(),
        number::EUC_TW | number::MULE_INTERNAL => {
            let shown = |byte: &u8| {
                if byte.is_ascii() {
                    char::from(*byte)
                } else {
                    char::REPLACEMENT_CHARACTER
                }
            };
            bytes.iter().map(shown).collect()
        }
        _ => match decoder(encoding) {
            Some(encoding) => {
                let mut decoder = encoding.new_decoder_without_bom_handling();
                let mut text =
                    String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(0));
                // Not marked as the last input, so that a partial character at the end is held back.
                let _ = decoder.decode_to_string(bytes, &mut text, false);
                text.into()
            }
            None => from_utf8(bytes),
        },
    }
}

/// Decodes UTF-8, or bytes of a database without an encoding.
fn from_utf8(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(e) if e.error_len().is_none() => {
            String::from_utf8_lossy(&bytes[..e.valid_up_to()]).into_owned().into()
        }
        Err(_) => String::from_utf8_lossy(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQL_ASCII: i32 = 0;

    /// PostgreSQL's conversion of texts to each encoding: number, text, bytes in hexadecimal
    /// (`select pg_char_to_encoding(name), text, encode(convert_to(text, name), 'hex')`).
    const CONVERTED: &str = include_str!("../tests/data/encodings.tsv");

    #[test]
    fn texts_are_decoded_as_postgresql_encodes_them() {
        let mut seen = std::collections::BTreeSet::new();
        for line in CONVERTED.lines().filter(|line| !line.starts_with('#')) {
            let mut fields = line.split('\t');
            let mut field = || fields.next().unwrap();
            let (encoding, text, hex) = (field().parse().unwrap(), field(), field());
            let bytes: Vec<u8> = (0..hex.len() / 2)
                .map(|n| u8::from_str_radix(&hex[2 * n..2 * n + 2], 16).unwrap())
                .collect();
            assert_eq!(decode(&bytes, encoding), text, "{encoding}");
            // Wherever it is truncated, the result is a prefix of the text.
            for end in 0..bytes.len() {
                let cut = decode(&bytes[..end], encoding);
                assert!(text.starts_with(&*cut), "{encoding}: {cut} of {text}, {end} bytes");
            }
            seen.insert(encoding);
        }
        let all: Vec<i32> = (0..=34)
            .filter(|n| ![SQL_ASCII, number::EUC_TW, number::MULE_INTERNAL].contains(n))
            .collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), all);
    }

    #[test]
    fn what_nothing_decodes_is_marked() {
        assert_eq!(decode(b"a\xa4\xe1b", number::EUC_TW), "a\u{fffd}\u{fffd}b");
        assert_eq!(decode("größe".as_bytes(), SQL_ASCII), "größe");
        assert_eq!(decode(b"gr\xf6e", SQL_ASCII), "gr\u{fffd}e");
        assert_eq!(decode(b"gr\xf6e", 99), "gr\u{fffd}e");
        assert_eq!(decode(b"\xff\xff select", 1), "\u{fffd}\u{fffd} select");
    }
}
