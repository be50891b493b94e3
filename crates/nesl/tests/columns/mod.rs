//! The columns of all rows of the table of primitives agree on edge values: the evaluator, VCODE on the host,
//! kernels, loops of elements, and sequential forms in threads and in warps.

use crate::answer;
use crate::support::{self, Open};
use broadloom_nesl::primitives::{Elementwise, Fold};
use broadloom_nesl::run::Target;
use broadloom_nesl::session::{Engine, Session, Settings};
use broadloom_nesl::vcode::{Choice, Op, Type};
use libtest_mimic::Failed;

/// Variables of the values.
const VARIABLES: &str = "inf = exp(1000.0); nan = inf - inf; least = lshift(1, 31); far = lshift(1, 63);";

const INTS: [&str; 9] = ["0", "1", "-1", "7", "-8", "33", "least", "not(least)", "far"];
const FLOATS: [&str; 11] =
    ["0.0", "-1.0 * 0.0", "1.0", "-0.5", "1.5", "-2.5", "2147483648.0", "1e19", "inf", "-1.0 * inf", "nan"];
const BOOLS: [&str; 2] = ["t", "f"];

/// Sequences of floats are such that every order of additions gives one result.
const SEQUENCES: [(Type, &[&str]); 3] = [
    (Type::Int, &["[] int", "[7]", "[-8, 3, 0]", "[least, -1]", "[not(least), 1]", "[far, far, 6]", "index(70)"]),
    (Type::Float, &["[] float", "[0.5]", "[-2.0, 0.25, 8.0]", "[1e37]", "[inf, 1.0]", "[inf, -1.0 * inf]", "[-1.0 * inf]"]),
    (Type::Bool, &["[] bool", "[t]", "[f]", "[t, f, t]", "{i > 3 : i in index(70)}"]),
];

/// Returns the types that a type suffix allows.
fn types(choice: Choice) -> Vec<Type> {
    match choice {
        Choice::Fixed(ty) => vec![ty],
        other => [Type::Int, Type::Float, Type::Bool].into_iter().filter(|ty| other.allows(*ty)).collect(),
    }
}

fn values(ty: Type) -> Vec<&'static str> {
    match ty {
        Type::Float => FLOATS.to_vec(),
        Type::Bool => BOOLS.to_vec(),
        Type::Int | Type::Char | Type::Segdes => INTS.to_vec(),
    }
}

/// A call for lists of operands, and whether it fails.
struct Case {
    /// The call for operands `a` and `b`.
    call: String,
    operands: Vec<[&'static str; 2]>,
    fails: bool,
}

impl Case {
    /// Returns a program that calls it for all elements: by itself, in a loop, or in another recursion.
    fn program(&self, form: &str) -> String {
        let list = |which: usize| self.operands.iter().map(|operands| operands[which]).collect::<Vec<_>>().join(", ");
        let (call, a, b) = (&self.call, list(0), list(1));
        match form {
            "loop" => format!(
                "function again(a, b, n) = if n == 0 then {call} else again(a, b, n - 1); \
                 {{again(a, b, 1) : a in [{a}]; b in [{b}]}};"
            ),
            "recursion" => format!(
                "function twice(a, b, n) = if n == 0 then {call} else let r = twice(a, b, n - 1) in if n > 5 then twice(a, b, 0) else r; \
                 {{twice(a, b, 1) : a in [{a}]; b in [{b}]}};"
            ),
            _ => format!("{{{call} : a in [{a}]; b in [{b}]}};"),
        }
    }
}

/// Runs a program. Returns its last answer, without the place of an error.
fn run(session: &mut Session, program: &str) -> String {
    let outputs = session.eval("columns", program);
    let text = answer(&outputs[outputs.len().saturating_sub(1)..]);
    text.split(" Some(").next().unwrap_or_default().to_owned()
}

/// Makes the cases of all rows: for each type one with all operations that cannot fail, and for each of the
/// others one with the operands that have a result, and one that fails.
fn cases(evaluator: &mut Session) -> Vec<Case> {
    let mut cases = vec![];
    for ty in [Type::Int, Type::Float, Type::Bool] {
        let all: Vec<[&str; 2]> = values(ty).into_iter().flat_map(|a| values(ty).into_iter().map(move |b| [a, b])).collect();
        let mut total = vec![];
        for row in Elementwise::ALL.iter().filter(|row| types(Op::from(**row).choice()).contains(&ty)) {
            // `=` is a name of the library only.
            for name in row.names().iter().filter(|name| **name != "=") {
                let is_of_two = Op::from(*row).operands().len() == 2;
                let is_infix = !name.starts_with(char::is_alphabetic) || Op::from(*row).choice() == Choice::Logical;
                let call = match (is_of_two, is_infix) {
                    (true, true) => format!("a {name} b"),
                    (true, false) => format!("{name}(a, b)"),
                    (false, _) => format!("{name}(a)"),
                };
                let case = |operands, fails| Case { call: call.clone(), operands, fails };
                if run(evaluator, &case(all.clone(), false).program("")).contains("it = ") {
                    total.push(call);
                    continue;
                }
                let mut holds =
                    |operands: &[&'static str; 2]| run(evaluator, &case(vec![*operands], false).program("")).contains("it = ");
                let (defined, failing): (Vec<[&str; 2]>, Vec<[&str; 2]>) =
                    all.iter().copied().partition(|operands| holds(operands));
                cases.extend([case(defined, false), case(failing[..1].to_vec(), true)]);
            }
        }
        cases.push(Case { call: format!("({})", total.join(", ")), operands: all, fails: false });
    }
    cases
}

/// Makes programs of all folds of a type, flattened and in a recursion.
fn folds() -> Vec<String> {
    let mut programs = vec![];
    for (ty, sequences) in SEQUENCES {
        let rows = Fold::ALL.iter().filter(|row| types(row.reduction().choice()).contains(&ty));
        let calls: Vec<String> = rows.flat_map(|row| row.names().map(|name| format!("{name}(v)"))).collect();
        let (calls, sequences) = (calls.join(", "), sequences.join(", "));
        programs.push(format!("{{({calls}) : v in [{sequences}]}};"));
        programs.push(format!(
            "function twice(v, n) = if n == 0 then ({calls}) else let r = twice(v, n - 1) in if n > 5 then twice(v, 0) else r; \
             {{twice(v, 1) : v in [{sequences}]}};"
        ));
    }
    programs
}

/// Tells whether two answers agree. The last digits of elementary functions differ between executions.
fn agree(a: &str, b: &str, tolerance: f64) -> bool {
    let parts = |text: &str| text.split([',', '[', ']', '(', ')', ' ']).map(str::to_owned).collect::<Vec<String>>();
    let close = |a: &str, b: &str| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => (x - y).abs() <= tolerance * x.abs().max(y.abs()),
        _ => false,
    };
    let (a, b) = (parts(a), parts(b));
    a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| a == b || close(a, b))
}

/// Sessions that execute programs in all ways, by their names. One width is enough for warps.
fn executions(settings: Settings, open: Open) -> Vec<(&'static str, Session)> {
    let vcode = Settings { engine: Engine::Vcode, ..settings };
    let device = || Target::new(open).with_threshold(0).with_sequential_limit(16);
    let mut sessions = vec![("VCODE", support::session(vcode)), ("device", support::session_on(settings, device()))];
    if !settings.options.widths.wide_int {
        sessions.push(("warps", support::session_on(settings, device().with_calls_in_warps())));
    }
    for (_, session) in &mut sessions {
        session.eval("variables", VARIABLES);
    }
    sessions
}

pub(crate) fn agreement(open: Open) -> Result<(), Failed> {
    let mut wrong = vec![];
    for (wide, narrow) in [(false, false), (true, true)] {
        let mut settings = Settings { print_length: 1000, ..Settings::default() };
        (settings.options.widths.wide_int, settings.options.widths.narrow_float) = (wide, narrow);
        let mut evaluator = support::session(settings);
        evaluator.eval("variables", VARIABLES);
        let cases = cases(&mut evaluator);
        for (name, mut session) in executions(settings, open) {
            for case in &cases {
                for form in ["", "loop", "recursion"] {
                    let program = case.program(form);
                    let (expected, found) = (run(&mut evaluator, &program), run(&mut session, &program));
                    if case.fails == expected.contains("it = ") || !agree(&expected, &found, if narrow { 1e-6 } else { 1e-13 }) {
                        wrong.push(format!("{name}: {program}\n  found    {found}  expected {expected}"));
                    }
                }
            }
            for program in folds() {
                let (expected, found) = (run(&mut evaluator, &program), run(&mut session, &program));
                if !expected.contains("it = ") || found != expected {
                    wrong.push(format!("{name}: {program}\n  found    {found}  expected {expected}"));
                }
            }
            let done = session.statistics();
            if name != "VCODE" && (done.loop_calls == 0 || done.sequential_calls == 0) {
                wrong.push(format!("{name}: {} loops, {} sequential calls", done.loop_calls, done.sequential_calls));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
