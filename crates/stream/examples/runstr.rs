//! Scratch runner.
use broadloom_stream::Program;
use broadloom_stream::eval::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let text = String::from_utf8_lossy(&std::fs::read(&a[1]).unwrap()).into_owned();
    let mut host = Memory::default();
    let limits = Limits { steps: 2_000_000_000, ..Limits::default() };
    match Program::compile(&a[1], &text, &mut host, &limits) {
        Err(e) => { eprint!("{e}"); std::process::exit(1) }
        Ok(p) => {
            if a.len() > 3 { print!("{}", p.graph.to_dot(&p.core)); for (id, n) in p.graph.nodes.iter() { if let Some(s) = &p.schedule { println!("{} x{} init {}", n.name, s.repetition(id), s.init_firings[cranelift_entity::EntityRef::index(id)]); } } }
            let r = p.run(&mut host, &Settings { iterations: Some(a[2].parse().unwrap()), limits });
            print!("{}", host.output);
            match r { Err(e) => eprint!("{e}"), Ok(o) => eprintln!("{o:?}") }
        }
    }
}
