//! Programs over graphs: ranks of pages, breadth-first search, labels of components.

use super::floats::Result;
use crate::arrays::job::repeated;
use crate::error::Failure;
use crate::inputs::{hashed, weighed};
use crate::job::{Job, Work, close, equal};
use broadloom::array::{Boundary, Function, evaluate_all};
use broadloom::{Array, Context, Segments, span};

type Prepared = std::result::Result<Job, Failure>;

/// A graph: for each node the place of its first edge, and the other end of each edge.
struct Graph {
    offsets: Vec<i32>,
    ends: Vec<i32>,
}

impl Graph {
    /// Makes a graph whose nodes have up to 16 edges, node 0 eight of them.
    fn new(n: usize) -> Graph {
        let mut offsets = vec![0i32; n + 1];
        for i in 0..n {
            offsets[i + 1] = offsets[i] + if i == 0 { 8 } else { (hashed(i as u32, 17) % 17) as i32 };
        }
        let ends = (0..offsets[n] as u32).map(|edge| (hashed(edge, 18) % n as u32) as i32).collect();
        Graph { offsets, ends }
    }

    fn nodes(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns the edges of a node.
    fn edges(&self, node: usize) -> &[i32] {
        &self.ends[self.offsets[node] as usize..self.offsets[node + 1] as usize]
    }

    /// Returns the first end of each edge.
    fn starts(&self) -> Vec<i32> {
        let of = |node: usize| std::iter::repeat_n(node as i32, self.edges(node).len());
        (0..self.nodes()).flat_map(of).collect()
    }

    /// Returns the number of edges from node 0 to each node, or -1.
    fn levels(&self) -> Vec<i32> {
        let mut levels = vec![-1; self.nodes()];
        let (mut front, mut depth) = (vec![0usize], 0);
        levels[0] = 0;
        while !front.is_empty() {
            depth += 1;
            let mut next = vec![];
            for &end in front.iter().flat_map(|node| self.edges(*node)) {
                if levels[end as usize] < 0 {
                    levels[end as usize] = depth;
                    next.push(end as usize);
                }
            }
            front = next;
        }
        levels
    }
}

fn judge_levels(graph: &Graph, got: &[Vec<i32>]) -> std::result::Result<f64, Failure> {
    let want = graph.levels();
    equal(&got[0], |i| want[i])?;
    Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
}

pub(super) fn search_frontier(context: &Context, n: usize) -> Prepared {
    let graph = Graph::new(n);
    let (offsets, ends) = (Array::line(context, &graph.offsets)?, Array::line(context, &graph.ends)?);
    let work = Work::memory(8 * graph.ends.len() + 8 * n, 0);
    let context = context.clone();
    let search = move || -> Result<Vec<Array<i32>>> {
        let mut level = Array::full(&context, n, -1i32)?.replace_slice(&span![0], 0)?;
        level.evaluate()?;
        let (mut front, mut depth) = (Array::line(&context, &[0i32])?, 0);
        while !front.is_empty() {
            depth += 1;
            let first = offsets.gather(&[&front], Boundary::Clamp)?;
            let degree = offsets.gather(&[&(&front + 1)], Boundary::Clamp)? - &first;
            evaluate_all(&[first.node(), degree.node()])?;
            let total = degree.sum().item()? as usize;
            if total == 0 {
                break;
            }
            // The member of the frontier that each edge belongs to, and the node that it leads to.
            let begin = degree.sum_before(0)?;
            let numbers = Array::iota(&context, front.len())?;
            let marks = Array::full(&context, total, 0i32)?.scatter_max(&[&degree.gt(0)?.cond(&begin, -1)?], &numbers)?;
            let member = marks.cumulative_max(0)?;
            let edge = Array::<i32>::iota(&context, total)? + (first - begin).gather(&[&member], Boundary::Clamp)?;
            let end = ends.gather(&[&edge], Boundary::Clamp)?;
            let fresh = level.gather(&[&end], Boundary::Clamp)?.lt(0)?.cond(&end, -1)?;
            level = level.scatter_max(&[&fresh], &Array::full(&context, total, depth)?)?;
            level.evaluate()?;
            front = Array::<i32>::iota(&context, n)?.pack(&level.eq(depth)?)?;
        }
        Ok(vec![level])
    };
    Ok(repeated(work, search, move |got| judge_levels(&graph, got)))
}

pub(super) fn search_dense(context: &Context, n: usize) -> Prepared {
    let graph = Graph::new(n);
    let (starts, ends) = (Array::line(context, &graph.starts())?, Array::line(context, &graph.ends)?);
    let work = Work::memory(8 * graph.ends.len() + 8 * n, 0);
    let first = Array::full(context, n, -1i32)?.replace_slice(&span![0], 0)?;
    first.evaluate()?;
    let round = Function::new(context, move |level: &Array<i32>, depth: &Array<i32>| {
        let active = level.gather(&[&starts], Boundary::Clamp)?.eq(depth)?.cond(&ends, -1)?;
        let zeros = Array::full(level.context(), n, 0i32)?;
        let met = zeros.scatter_max(&[&active], &Array::full(level.context(), active.len(), 1i32)?)?;
        let fresh = level.lt(0)? & met.gt(0)?;
        Ok((fresh.cond(depth + 1, level)?, fresh.cast::<u32>()?.sum()))
    });
    let search = move || {
        let mut level = first.clone();
        for depth in 0i32.. {
            let (next, count) = round.call((&level, depth))?;
            level = next;
            if count.item()? == 0 {
                break;
            }
        }
        Ok(vec![level])
    };
    Ok(repeated(work, search, move |got| judge_levels(&graph, got)))
}

const RANK_ROUNDS: usize = 3;

pub(super) fn page_rank(context: &Context, n: usize) -> Prepared {
    let degree = |node: u32| {
        let (hash, degree) = (hashed(node, 5), (hashed(node, 5) >> 8) % 14);
        (if hash & 255 == 0 { degree * 138 } else { degree }) as i32
    };
    let lengths: Vec<i32> = (0..n as u32).map(degree).collect();
    let edges = lengths.iter().sum::<i32>() as usize;
    let sources: Vec<i32> = (0..edges as u32).map(|edge| (hashed(edge, 6) % n as u32) as i32).collect();
    let segments = Segments::from_lengths(&Array::line(context, &lengths)?, edges)?;
    segments.evaluate()?;
    let columns = Array::line(context, &sources)?;
    let degrees = columns.histogram(n)?.cast::<f32>()?;
    let inverse = degrees.gt(0.0)?.cond(1.0 / &degrees, 0.0)?;
    let dangling = degrees.eq(0.0)?.cast::<f32>()?;
    let first = Array::full(context, n, 1.0f32 / n as f32)?;
    evaluate_all(&[inverse.node(), dangling.node(), first.node()])?;
    let step = Function::new(context, move |rank: &Array<f32>| {
        let lost = (rank * &dangling).sum();
        let sums = (rank * &inverse).gather(&[&columns], Boundary::Clamp)?.segmented_sum(&segments)?;
        Ok((sums + lost / n as f32) * 0.85 + 0.15 / n as f32)
    });
    let expression = move || Ok(vec![(0..RANK_ROUNDS).try_fold(first.clone(), |rank, _| step.call(&rank))?]);
    let judge = move |got: &[Vec<f32>]| {
        let mut degrees = vec![0.0f64; n];
        sources.iter().for_each(|source| degrees[*source as usize] += 1.0);
        let mut rank = vec![1.0 / n as f64; n];
        for _ in 0..RANK_ROUNDS {
            let lost: f64 = rank.iter().zip(&degrees).filter(|(_, degree)| **degree == 0.0).map(|(rank, _)| rank).sum();
            let mut edge = 0;
            let mut next = vec![0.0; n];
            for (next, length) in next.iter_mut().zip(&lengths) {
                let own = &sources[edge..edge + *length as usize];
                let sum: f64 = own.iter().map(|source| rank[*source as usize] / degrees[*source as usize]).sum();
                *next = (sum + lost / n as f64) * 0.85 + 0.15 / n as f64;
                edge += *length as usize;
            }
            rank = next;
        }
        close(&got[0], |i| rank[i], 1e-4, 1e-9)?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    let bytes = RANK_ROUNDS * (8 * edges + 20 * n);
    Ok(repeated(Work::memory(bytes, RANK_ROUNDS * 2 * edges), expression, judge))
}

const LABEL_ROUNDS: usize = 8;

/// Each node takes the least label of its neighbours, and then the label of its label.
pub(super) fn components(context: &Context, n: usize) -> Prepared {
    let [from, to] = [3, 4].map(|seed| (0..n as u32).map(|edge| (hashed(edge, seed) % n as u32) as i32).collect::<Vec<_>>());
    let (starts, ends) = (Array::line(context, &from)?, Array::line(context, &to)?);
    let first = Array::<i32>::iota(context, n)?;
    first.evaluate()?;
    let step = Function::new(context, move |label: &Array<i32>| {
        let (a, b) = (label.gather(&[&starts], Boundary::Clamp)?, label.gather(&[&ends], Boundary::Clamp)?);
        let low = a.minimum(&b)?;
        let met = label.scatter_min(&[&a], &low)?.scatter_min(&[&b], &low)?;
        met.gather(&[&met], Boundary::Clamp)
    });
    let expression = move || Ok(vec![(0..LABEL_ROUNDS).try_fold(first.clone(), |label, _| step.call(&label))?]);
    let judge = move |got: &[Vec<i32>]| {
        let mut label: Vec<i32> = (0..n as i32).collect();
        for _ in 0..LABEL_ROUNDS {
            let mut met = label.clone();
            for (from, to) in from.iter().zip(&to) {
                let (a, b) = (label[*from as usize], label[*to as usize]);
                met[a as usize] = met[a as usize].min(a.min(b));
                met[b as usize] = met[b as usize].min(a.min(b));
            }
            label = met.iter().map(|own| met[*own as usize]).collect();
        }
        equal(&got[0], |i| label[i])?;
        Ok(weighed(got[0].iter().map(|&x| f64::from(x)), 0))
    };
    Ok(repeated(Work::memory(LABEL_ROUNDS * 32 * n, 0), expression, judge))
}
