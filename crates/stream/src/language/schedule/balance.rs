//! Repetitions of the steady state: the smallest positive integers with push · r(producer) = pop ·
//! r(consumer) on every tape.

use super::levels::Firing;
use super::phased::gcd;
use crate::language::codes;
use crate::language::graph::{Graph, NodeId, TapeId};
use crate::language::text::plural;
use broadloom_diag::Diagnostic;
use cranelift_entity::EntityRef;

/// A positive fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    over: u128,
    under: u128,
}

impl Fraction {
    fn scale(self, times: u64, divided: u64) -> Option<Fraction> {
        let (times, divided) = (u128::from(times), u128::from(divided));
        let shared = gcd(times, divided);
        let (times, divided) = (times / shared, divided / shared);
        let (first, second) = (gcd(self.over, divided), gcd(times, self.under));
        let over = (self.over / first).checked_mul(times / second)?;
        let under = (self.under / second).checked_mul(divided / first)?;
        Some(Fraction { over, under })
    }
}

/// Returns the firings of each node in a steady state, by index. All rates must be known.
pub fn balance(graph: &Graph) -> Result<Vec<u64>, Box<Diagnostic>> {
    let firings: Vec<Firing> = graph.nodes.values().map(|node| Firing::new(node.flow())).collect();
    let mut rates: Vec<Option<Fraction>> = vec![None; graph.nodes.len()];
    let mut repetitions = vec![0; graph.nodes.len()];
    for start in graph.nodes.keys() {
        if rates[start.index()].is_some() {
            continue;
        }
        rates[start.index()] = Some(Fraction { over: 1, under: 1 });
        let mut component = vec![start];
        let mut next = 0;
        while let Some(node) = component.get(next).copied() {
            next += 1;
            let rate = rates[node.index()].unwrap_or(Fraction { over: 1, under: 1 });
            for tape in graph.nodes[node].inputs.iter().chain(&graph.nodes[node].outputs) {
                let (from, to) = (graph.tapes[*tape].from, graph.tapes[*tape].to);
                let (push, pop) = (firings[from.0.index()].push[from.1], firings[to.0.index()].pop[to.1]);
                let (other, wanted) =
                    if from.0 == node { (to.0, rate.scale(push, pop)) } else { (from.0, rate.scale(pop, push)) };
                let wanted = wanted.ok_or_else(|| too_large(graph, node))?;
                match rates[other.index()] {
                    None => {
                        rates[other.index()] = Some(wanted);
                        component.push(other);
                    }
                    Some(found) if found == wanted => {}
                    Some(_) => return Err(unbalanced(graph, *tape, &firings, &rates)),
                }
            }
        }
        let mut common: u128 = 1;
        for node in &component {
            let under = rates[node.index()].map_or(1, |rate| rate.under);
            common = (common / gcd(common, under)).checked_mul(under).ok_or_else(|| too_large(graph, *node))?;
        }
        let counts =
            component.iter().map(|node| rates[node.index()].and_then(|rate| (common / rate.under).checked_mul(rate.over)));
        let counts = counts.collect::<Option<Vec<u128>>>().ok_or_else(|| too_large(graph, start))?;
        let shared = counts.iter().fold(0, |shared, count| gcd(shared, *count)).max(1);
        for (node, count) in component.iter().zip(counts) {
            repetitions[node.index()] = u64::try_from(count / shared).map_err(|_| too_large(graph, *node))?;
        }
    }
    Ok(repetitions)
}

fn too_large(graph: &Graph, node: NodeId) -> Box<Diagnostic> {
    let message = format!("the steady state has more firings of `{}` than can be counted", graph.nodes[node].name);
    let error = Diagnostic::error(codes::TOO_LARGE, message).at(graph.nodes[node].span, "");
    Box::new(error.help("rates without a common factor multiply; make the rates of neighbours alike"))
}

/// Returns the error for a tape whose producer and consumer rates cannot be balanced.
fn unbalanced(graph: &Graph, tape: TapeId, firings: &[Firing], rates: &[Option<Fraction>]) -> Box<Diagnostic> {
    let (from, to) = (graph.tapes[tape].from, graph.tapes[tape].to);
    let (producer, consumer) = (&graph.nodes[from.0], &graph.nodes[to.0]);
    let (push, pop) = (firings[from.0.index()].push[from.1], firings[to.0.index()].pop[to.1]);
    let round = |node: NodeId, items: u64| rates[node.index()].and_then(|rate| rate.scale(items, 1));
    let mut error = Diagnostic::error(
        codes::UNBALANCED,
        format!("{} has no steady state: it would fill up or run empty", graph.describe(tape)),
    );
    error = error.at(consumer.span, format!("takes {pop} in each firing"));
    error = error.label(producer.span, format!("produces {push} in each firing"));
    if let (Some(produced), Some(consumed)) = (round(from.0, push), round(to.0, pop)) {
        let common = produced.under / gcd(produced.under, consumed.under) * consumed.under;
        let numbers = (produced.over * (common / produced.under), consumed.over * (common / consumed.under));
        let shared = gcd(numbers.0, numbers.1).max(1);
        error = error.note(format!(
            "at the rates of the rest of the graph, `{}` produces {} while `{}` consumes {}",
            producer.name,
            plural(numbers.0 / shared, "item"),
            consumer.name,
            numbers.1 / shared
        ));
    }
    Box::new(error.help(
        "branches of a splitjoin have to keep the proportion of the weights; a loop has to bring back what its joiner takes",
    ))
}
