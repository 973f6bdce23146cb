// SPDX-License-Identifier: PostgreSQL
//! Parameters of statements, sent as text; the server knows their types.

/// A value that can be a parameter.
pub trait Param {
    /// The value as PostgreSQL reads it; `None`: null.
    fn text(&self) -> Option<String>;
}

macro_rules! as_displayed {
    ($($of:ty),*) => {
        $(impl Param for $of {
            fn text(&self) -> Option<String> {
                Some(self.to_string())
            }
        })*
    };
}

as_displayed!(i32, i64, u32, bool, str, String);

impl<T: Param + ?Sized> Param for &T {
    fn text(&self) -> Option<String> {
        (**self).text()
    }
}

impl<T: Param> Param for Option<T> {
    fn text(&self) -> Option<String> {
        self.as_ref()?.text()
    }
}

fn array<T: Param>(items: &[T]) -> String {
    let quoted = |item: &T| match item.text() {
        None => "NULL".into(),
        Some(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    };
    format!("{{{}}}", items.iter().map(quoted).collect::<Vec<_>>().join(","))
}

impl<T: Param> Param for [T] {
    fn text(&self) -> Option<String> {
        Some(array(self))
    }
}

impl<T: Param> Param for Vec<T> {
    fn text(&self) -> Option<String> {
        Some(array(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_are_quoted() {
        assert_eq!(vec![1, 2].text().as_deref(), Some(r#"{"1","2"}"#));
        assert_eq!(vec![r#"a"b\"#, ""].text().as_deref(), Some(r#"{"a\"b\\",""}"#));
        assert_eq!(vec![None::<i32>].text().as_deref(), Some("{NULL}"));
    }

    #[test]
    fn values_are_written_as_the_server_reads_them() {
        assert_eq!(true.text().as_deref(), Some("true"));
        assert_eq!((-7i64).text().as_deref(), Some("-7"));
        assert_eq!("it's".text().as_deref(), Some("it's"));
        assert_eq!(None::<i32>.text(), None);
        assert_eq!(Some("x").text().as_deref(), Some("x"));
        assert_eq!(Vec::<i32>::new().text().as_deref(), Some("{}"));
        assert_eq!([Some("NULL"), None].text().as_deref(), Some(r#"{"NULL",NULL}"#));
    }
}
