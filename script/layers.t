#!/usr/bin/perl
# SPDX-License-Identifier: PostgreSQL
# Tests script/layers on small trees: which dependencies it detects, and which names are not dependencies.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Path qw(make_path);
use File::Temp qw(tempdir);
use FindBin;
use Test::More import => [qw(is isnt like done_testing)];

my $RULES = "C top\nC pg_tally/sql\nC pg_tally/*\nC libtally\ncrates a\ncrates b\nJava probe\nJava segment\n";
my $JAVA = 'client/java/src/main/java/org/pgtally';

# Returns exit status and output of script/layers in a tree of these files.
sub check {
    my (%files) = @_;
    my $root = tempdir(CLEANUP => 1);
    my $rules = delete $files{rules} // '';
    my $options = delete $files{options} // '';
    $files{'ARCHITECTURE.md'} = "```layers\n$RULES$rules```\n";
    for my $name (keys %files) {
        make_path("$root/" . dirname($name));
        open my $out, '>', "$root/$name" or die $!;
        print $out $files{$name};
        close $out or die $!;
    }
    system("git -C '$root' init -q && git -C '$root' add -A") == 0 or die 'git failed';
    local $ENV{LAYERS_ROOT} = $root;
    my $output = `$FindBin::Bin/layers $options 2>&1`;
    return ($? >> 8, $output);
}

sub refuses {
    my ($what, $text, %files) = @_;
    my ($status, $output) = check(%files);
    is($status, 1, "refused: $what");
    like($output, $text, "and reported: $what");
}

sub accepts {
    my ($what, %files) = @_;
    my ($status, $output) = check(%files);
    is($output, '', "nothing reported: $what");
    is($status, 0, "accepted: $what");
}

# ------------------------------------------------------------------ C

my %two = ('pg_tally/a.h' => "extern int a(void);\n", 'pg_tally/b.h' => "extern int b(void);\n");

accepts('a source that uses a lower one', %two,
    'pg_tally/a.c' => "#include \"a.h\"\n#include \"b.h\"\nint a(void)\n{\n\treturn b();\n}\n",
    'pg_tally/b.c' => "#include \"b.h\"\nint b(void)\n{\n\treturn 1;\n}\n");
refuses('a call hidden by a prototype in a third header', qr/2 files use each other in a circle \(C\): pg_tally\/a pg_tally\/b\n.*pg_tally\/a\.c:4 names b.*pg_tally\/b\.c:4 names a/s,
    'pg_tally/all.h' => "extern int a(void);\nextern int b(void);\n",
    'pg_tally/a.c' => "#include \"all.h\"\nint a(void)\n{\n\treturn b();\n}\n",
    'pg_tally/b.c' => "#include \"all.h\"\nint b(void)\n{\n\treturn a();\n}\n");
refuses('a variable of another source', qr/in a circle \(C\).*b\.c:4 names state/s, %two,
    'pg_tally/all.h' => "extern int state;\n",
    'pg_tally/a.c' => "#include \"b.h\"\nint state = 1;\nint a(void)\n{\n\treturn b();\n}\n",
    'pg_tally/b.c' => "#include \"all.h\"\nint b(void)\n{\n\treturn state;\n}\n");
refuses("a header's inline call", qr/in a circle \(C\): pg_tally\/a pg_tally\/b/,
    'pg_tally/a.h' => "extern int a(void);\nextern int b(void);\nstatic inline int twice(void)\n{\n\treturn 2 * b();\n}\n",
    'pg_tally/a.c' => "#include \"a.h\"\nint a(void)\n{\n\treturn 1;\n}\n",
    'pg_tally/b.c' => "#include \"a.h\"\nint b(void)\n{\n\treturn twice();\n}\n");
refuses('two headers that include each other', qr/a\.h includes pg_tally\/b\.h/,
    'pg_tally/a.h' => "#include \"b.h\"\n", 'pg_tally/b.h' => "#include \"a.h\"\n");
accepts('a local variable and a member that have the name of a function', %two,
    'pg_tally/a.c' => "#include \"b.h\"\nint a(void)\n{\n\treturn b();\n}\n",
    'pg_tally/b.c' => "#include \"b.h\"\nint b(void)\n{\n\tint a = 1;\n\n\treturn a + x->a;\n}\n");
accepts('a name in a comment and in a string', %two,
    'pg_tally/a.c' => "#include \"b.h\"\nint a(void)\n{\n\treturn b();\n}\n",
    'pg_tally/b.c' => "#include \"b.h\"\n/* a() */\nint b(void)\n{\n\treturn puts(\"a\");\n}\n");
refuses('a declaration of its own for what another source defines', qr/b\.c:\d names a/, %two,
    'pg_tally/a.c' => "#include \"b.h\"\nint a(void)\n{\n\treturn b();\n}\n",
    'pg_tally/b.c' => "extern int a(void);\n\nint b(void)\n{\n\treturn a();\n}\n");
accepts('a header in include/ and the source of its name',
    'libtally/include/one.h' => "extern int one(void);\n",
    'libtally/src/one.c' => "#include \"one.h\"\nint one(void)\n{\n\treturn 1;\n}\n");
refuses('an upward arrow', qr/pg_tally\/sql\/view is not below pg_tally\/a/,
    'pg_tally/a.c' => "#include \"sql/view.h\"\n", 'pg_tally/sql/view.h' => "extern int view(void);\n");
refuses('a folder without a layer', qr/pg_tally\/new\/a has no layer/, 'pg_tally/new/a.c' => "int a;\n");
refuses('two sources with the same name', qr/two sources with the same name: pg_tally\/a\.c pg_tally\/sql\/a\.c/,
    'pg_tally/a.c' => "static int x;\n", 'pg_tally/sql/a.c' => "static int x;\n");

# ------------------------------------------------------------------ Rust

my %crate = ('crates/a/Cargo.toml' => "[package]\nname = \"a\"\n");

refuses('a re-export that hides a circle', qr/2 files use each other in a circle \(Rust\).*ask\.rs:1 uses crate::Shown/s, %crate,
    'crates/a/src/lib.rs' => "mod ask;\nmod show;\npub use show::Shown;\n",
    'crates/a/src/ask.rs' => "use crate::Shown;\npub struct Asked(Shown);\n",
    'crates/a/src/show.rs' => "use crate::ask::Asked;\npub struct Shown(Box<Asked>);\n");
refuses('a module and its child', qr/in a circle \(Rust\): crates\/a\/src\/top\/draw\.rs crates\/a\/src\/top\/mod\.rs/, %crate,
    'crates/a/src/lib.rs' => "mod top;\n",
    'crates/a/src/top/mod.rs' => "mod draw;\npub struct State;\nfn run() {\n    draw::all();\n}\n",
    'crates/a/src/top/draw.rs' => "use super::State;\npub fn all(_: State) {}\n");
refuses('a glob', qr/in a circle \(Rust\)/, %crate,
    'crates/a/src/lib.rs' => "mod x;\nmod y;\n",
    'crates/a/src/x.rs' => "use crate::y::*;\npub struct X(Y);\n",
    'crates/a/src/y.rs' => "use crate::x::X;\npub struct Y(Box<X>);\n");
accepts('a re-export alone, a doc comment, and a test', %crate,
    'crates/a/src/lib.rs' => "mod x;\nmod y;\npub use x::X;\n",
    'crates/a/src/x.rs' => "use crate::y::Y;\npub struct X(Y);\n",
    'crates/a/src/y.rs' => "/// As crate::x::X.\npub struct Y;\n#[cfg(test)]\nmod tests {\n    use crate::x::X;\n}\n");
refuses('a crate that depends on one above', qr/crates\/a\/ is not below crates\/b\//, %crate,
    'crates/b/Cargo.toml' => "[package]\nname = \"b\"\n[dependencies]\na = { path = \"../a\" }\n");
refuses('a crate without a layer', qr/crates\/c\/ has no layer/, %crate,
    'crates/c/Cargo.toml' => "[package]\nname = \"c\"\n[dependencies]\na = { path = \"../a\" }\n");
refuses('a dependency that no code names', qr/names big-b, which no file of the crate uses/,
    'crates/b/Cargo.toml' => "[package]\nname = \"b\"\n[dependencies]\nbig-b.workspace = true\n",
    'crates/b/src/lib.rs' => "// big_b\n");
accepts('a dependency that code names, and one for its features',
    'crates/b/Cargo.toml' => "[package]\nname = \"b\"\n[dependencies]\nbig-b.workspace = true\n# Not named in code: b uses it.\nc = \"1\"\n",
    'crates/b/src/lib.rs' => "use big_b::B;\n");

# ------------------------------------------------------------------ Java and TypeScript

refuses('two classes of one package', qr/in a circle \(Java\)/,
    "$JAVA/probe/A.java" => "package org.pgtally.probe;\nclass A { B b; }\n",
    "$JAVA/probe/B.java" => "package org.pgtally.probe;\nclass B { A a; }\n");
refuses('an import of a package above', qr/is not below/,
    "$JAVA/probe/A.java" => "package org.pgtally.probe;\npublic class A { }\n",
    "$JAVA/segment/B.java" => "package org.pgtally.segment;\nimport org.pgtally.probe.A;\nclass B { A a; }\n");
refuses('a circle through index.ts', qr/in a circle \(TypeScript\).*names|in a circle \(TypeScript\).*imports/s,
    'web/src/parts/index.ts' => "export { two } from \"./two\";\n",
    'web/src/one.ts' => "import { two } from \"./parts\";\nexport const one = two;\n",
    'web/src/parts/two.ts' => "import { one } from \"../one\";\nexport const two = () => one;\n");

# ------------------------------------------------------------------ exceptions, the command line

my @circle = (
    'pg_tally/a.h' => "#include \"b.h\"\n",
    'pg_tally/b.h' => "#include \"a.h\"\n"
);
accepts('an exception', @circle, rules => "except pg_tally/b pg_tally/a: until it is mended\n");
refuses('an unneeded exception', qr/an unneeded exception: pg_tally\/b pg_tally\/a/,
    'pg_tally/a.h' => "#include \"b.h\"\n", 'pg_tally/b.h' => "", rules => "except pg_tally/b pg_tally/a: until it is mended\n");
refuses('two files in a circle', qr/2 files use each other in a circle \(C\)/, @circle);

my ($status, $output) = check(@circle, options => '--count');
is($status, 0, '--count reports only');
like($output, qr/^C +2 files, +2 arrows, +1 circles with +2 files$/m, 'the table of --count');
($status, $output) = check(@circle, options => '--of pg_tally/a.h');
is($output, "pg_tally/a.h includes pg_tally/b.h  (pg_tally/b)\nused by: pg_tally/b.h includes pg_tally/a.h\n", '--of a header');
for my $options ('--of nothing', '--of', '--all', 'pg_tally') {
    ($status, $output) = check(@circle, options => $options);
    is($status, 2, "status of: $options");
}
($status, $output) = check(rules => "Perl script\n");
isnt($status, 0, 'a language that is not checked');
like($output, qr/unknown set Perl in ARCHITECTURE.md; use C, Java, crates/, 'and reported');

done_testing();
