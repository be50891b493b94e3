//! Ragged data against plain loops, on all devices and for all kinds of raggedness, and the number of kernels
//! of its operations.

use crate::support::Random;
use crate::support::gpu::counting_gpu;
use broadloom_cpu::{CacheFolder, Cpu};
use broadloom_device::Device;
use broadloom_diag::Sources;
use broadloom_graph::text::{Vocabulary, parse, print};
use broadloom_graph::{
    Combine, Context, Direction, Elementwise, Extreme, Length, Node, Result, Segments, Shape, SortKey, StoredForms, Total, naive,
};
use broadloom_scalar::{BinaryOp, CompareOp, Element, Literal};
use std::sync::atomic::Ordering;

fn cpu() -> Device {
    let cache = CacheFolder::Nowhere;
    let mut options = broadloom_cpu::Options { threads: 2, memory_bytes: 1 << 28, cache, ..broadloom_cpu::Options::default() };
    options.compile.optimise = false;
    Device::new(Cpu::new(options).unwrap_or_else(|error| panic!("{error}")))
}

fn interp() -> Device {
    Device::new(broadloom_interp::Interp::new(Default::default()))
}

fn line(context: &Context, values: &[i64], element: Element) -> Result<Node> {
    let lanes: Vec<Literal> = values.iter().map(|value| Literal::from_i128(element, (*value).into())).collect();
    let bytes = Literal::to_bytes(&lanes);
    Node::upload(context, element.into(), Shape::from(values.len()), &bytes)
}

fn found(node: &Node) -> Result<Vec<i64>> {
    let lanes = node.read()?.lanes;
    Ok(lanes
        .iter()
        .map(|lane| lane.as_i128().map_or_else(|| lane.as_f64().unwrap_or(0.5) as i64, |number| number as i64))
        .collect())
}

fn binary(op: BinaryOp, a: &Node, b: &Node) -> Result<Node> {
    Node::elementwise(Elementwise::Binary(op), &[a, b])
}

fn number(context: &Context, value: impl Into<Literal>) -> Result<Node> {
    Node::fill(context, Shape::from([]), &[value.into()])
}

fn greater(a: &Node, than: i32) -> Result<Node> {
    Node::elementwise(Elementwise::Compare(CompareOp::Gt), &[a, &number(a.context(), than)?])
}

/// Returns random numbers of 31 bits.
fn numbers(count: usize, seed: u64) -> Vec<i64> {
    let mut random = Random::new(seed);
    (0..count).map(|_| random.below(1i64 << 31)).collect()
}

/// Returns lengths of several kinds, `count` of each.
fn raggedness(count: usize) -> Vec<(&'static str, Vec<usize>)> {
    let mixed = numbers(count, 3).iter().map(|n| if n % 11 == 0 { 37 } else { (n % 4) as usize }).collect();
    let mut giant = vec![0; count];
    giant[count / 2] = 120;
    vec![("empty", vec![0; count]), ("giant", giant), ("tiny", vec![1; count]), ("mixed", mixed)]
}

/// Ragged data on the host.
struct Ragged {
    lengths: Vec<usize>,
    values: Vec<i64>,
}

impl Ragged {
    fn new(lengths: &[usize], seed: u64) -> Ragged {
        let values = numbers(lengths.iter().sum(), seed).iter().map(|n| n % 23 - 9).collect();
        Ragged { lengths: lengths.to_vec(), values }
    }

    fn parts(&self) -> Vec<&[i64]> {
        let mut rest = &self.values[..];
        let part = |length: &usize| {
            let (part, behind) = rest.split_at(*length);
            rest = behind;
            part
        };
        self.lengths.iter().map(part).collect()
    }

    fn each(&self, f: impl Fn(&[i64]) -> i64) -> Vec<i64> {
        self.parts().into_iter().map(f).collect()
    }

    fn every(&self, f: impl Fn(&[i64]) -> Vec<i64>) -> Vec<i64> {
        self.parts().into_iter().flat_map(f).collect()
    }
}

fn prefixes(part: &[i64], inclusive: bool, backwards: bool, nothing: i64, f: impl Fn(i64, i64) -> i64) -> Vec<i64> {
    let (mut sum, mut all) = (nothing, vec![]);
    let mut part = part.to_vec();
    if backwards {
        part.reverse();
    }
    for x in part {
        let next = f(sum, x);
        all.push(if inclusive { next } else { sum });
        sum = next;
    }
    if backwards {
        all.reverse();
    }
    all
}

fn ranks(part: &[i64], descending: bool) -> Vec<i64> {
    let before = |i: usize, j: usize| {
        let (x, y) = if descending { (part[j], part[i]) } else { (part[i], part[j]) };
        x < y || x == y && i < j
    };
    (0..part.len()).map(|j| (0..part.len()).filter(|i| before(*i, j)).count() as i64).collect()
}

/// Place where the numbers of segments and elements are known.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    Host,
    Device,
}

/// Returns a line whose length only the device knows, with more elements after it.
fn unknown(context: &Context, values: &[i64], element: Element, length: &Length) -> Result<Node> {
    let mut all = values.to_vec();
    all.resize(length.bound(), 77);
    line(context, &all, element)?.shortened(length)
}

type Case = (String, Node, Vec<i64>);

/// Returns all operations, each with the result of a loop.
fn cases(context: &Context, lengths: &[usize], known: Known) -> Result<Vec<Case>> {
    let a = Ragged::new(lengths, 1);
    let total = a.values.len();
    let others: Vec<usize> = numbers(lengths.len(), 8).iter().map(|n| (n % 3) as usize).collect();
    let b = Ragged::new(&others, 2);
    let of = |count: usize, more: usize| Length::new(&number(context, count as i64)?, count + more);
    let (count_length, total_length, other_length) = (of(lengths.len(), 3)?, of(total, 40)?, of(b.values.len(), 5)?);
    let element_line = |values: &[i64], element: Element| match known {
        Known::Host => line(context, values, element),
        Known::Device => unknown(context, values, element, &total_length),
    };
    let segment_line = |values: &[i64], element: Element| match known {
        Known::Host => line(context, values, element),
        Known::Device => unknown(context, values, element, &count_length),
    };
    let other_line = |values: &[i64], element: Element| match known {
        Known::Host => line(context, values, element),
        Known::Device => unknown(context, values, element, &other_length),
    };
    let as_numbers = |lengths: &[usize]| lengths.iter().map(|n| *n as i64).collect::<Vec<i64>>();
    let x = element_line(&a.values, Element::I32)?;
    let y = other_line(&b.values, Element::I32)?;
    let segments = Segments::from_lengths(&segment_line(&as_numbers(lengths), Element::I32)?, Total::of(&x))?;
    let other = Segments::from_lengths(&segment_line(&as_numbers(&others), Element::U8)?, Total::of(&y))?;
    let mut all: Vec<Case> = vec![];
    let mut add = |name: &str, node: Node, expected: Vec<i64>| all.push((name.to_owned(), node, expected));

    // Forms.
    let mut offsets = vec![0i64];
    lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + *length as i64));
    let ids: Vec<i64> = lengths.iter().enumerate().flat_map(|(k, length)| vec![k as i64; *length]).collect();
    let heads: Vec<i64> = a.every(|part| (0..part.len()).map(|i| i64::from(i == 0)).collect());
    add("lengths", segments.lengths()?, as_numbers(lengths));
    add("offsets", segments.offsets()?, offsets.clone());
    add("heads", segments.heads()?, heads.clone());
    add("ids", segments.ids()?, ids.clone());
    let again = match known {
        Known::Host => Segments::from_offsets(&line(context, &offsets, Element::I64)?, Total::Unknown)?,
        Known::Device => {
            let length = Length::new(&number(context, offsets.len() as i64)?, offsets.len() + 4)?;
            Segments::from_offsets(&unknown(context, &offsets, Element::U32, &length)?, Total::of(&x))?
        }
    };
    add("ids of offsets", again.ids()?, ids.clone());
    let flags = element_line(&heads, Element::Bool)?;
    let filled: Vec<i64> = lengths.iter().filter(|length| **length > 0).map(|length| *length as i64).collect();
    let from_heads = Segments::from_heads(&flags, (known == Known::Host).then_some(filled.len()))?;
    add("lengths of heads", from_heads.lengths()?, filled);
    let sums_of_filled: Vec<i64> = a.parts().iter().filter(|part| !part.is_empty()).map(|part| part.iter().sum()).collect();
    add("sums of heads", from_heads.reduce(&[(&x, Combine::Sum)])?.remove(0), sums_of_filled);

    // Reductions.
    let double = binary(BinaryOp::Add, &x, &x)?;
    let many = segments.reduce(&[(&x, Combine::Sum), (&double, Combine::Max), (&x, Combine::Min)])?;
    add("sum", many[0].clone(), a.each(|part| part.iter().sum()));
    add("max", many[1].clone(), a.each(|part| part.iter().map(|x| 2 * x).max().unwrap_or(i32::MIN.into())));
    add("min", many[2].clone(), a.each(|part| part.iter().copied().min().unwrap_or(i32::MAX.into())));
    let place =
        |part: &[i64], best: Option<&i64>| best.map_or(-1, |best| part.iter().position(|x| x == best).unwrap_or(99) as i64);
    add("argmin", segments.extreme(&x, Extreme::Least, Element::I32)?, a.each(|part| place(part, part.iter().min())));
    add("argmax", segments.extreme(&x, Extreme::Greatest, Element::I64)?, a.each(|part| place(part, part.iter().max())));

    // Scans.
    for (inclusive, backwards) in [(true, false), (false, false), (true, true), (false, true)] {
        let direction = if backwards { Direction::Backwards } else { Direction::Forwards };
        let both = segments.scan(&[(&x, Combine::Sum), (&x, Combine::Max)], inclusive, direction)?;
        let name = format!("scan {inclusive} {backwards}");
        add(&name, both[0].clone(), a.every(|part| prefixes(part, inclusive, backwards, 0, |a, b| a + b)));
        add(&name, both[1].clone(), a.every(|part| prefixes(part, inclusive, backwards, i32::MIN.into(), i64::max)));
    }

    // One value for each segment.
    let per_segment: Vec<i64> = numbers(lengths.len(), 6).iter().map(|n| n % 100).collect();
    let values = segment_line(&per_segment, Element::I32)?;
    add("distribute", segments.distribute(&values)?, ids.iter().map(|k| per_segment[*k as usize]).collect());
    let within: Vec<i64> = a.every(|part| (0..part.len() as i64).collect());
    let expected = ids.iter().zip(&within).map(|(k, i)| per_segment[*k as usize] + 3 * i).collect();
    add("index", segments.index(&values, &number(context, 3i32)?)?, expected);

    // Packs.
    let chosen = greater(&x, 0)?;
    let (packed, lines) = segments.pack(&chosen, &[&x, &double])?;
    let kept = |part: &[i64]| part.iter().copied().filter(|x| *x > 0).collect::<Vec<i64>>();
    let kept_lengths = a.each(|part| kept(part).len() as i64);
    add("pack", lines[0].clone(), a.every(kept));
    add("pack doubles", lines[1].clone(), a.every(|part| kept(part).iter().map(|x| 2 * x).collect()));
    add("pack lengths", packed.lengths()?, kept_lengths.clone());
    let scaled = binary(BinaryOp::Add, &binary(BinaryOp::Mul, &lines[0], &lines[1])?, &packed.distribute(&values)?)?;
    let sums = packed.reduce(&[(&lines[0], Combine::Sum), (&scaled, Combine::Sum)])?;
    add("sums of packed", sums[0].clone(), a.each(|part| kept(part).iter().sum()));
    let expected = a.parts().into_iter().zip(&per_segment).map(|(part, v)| kept(part).iter().map(|x| 2 * x * x + v).sum());
    add("sums of scaled", sums[1].clone(), expected.collect());
    let running = packed.scan(&[(&lines[0], Combine::Sum)], true, Direction::Forwards)?.remove(0);
    add("scan of packed", running, a.every(|part| prefixes(&kept(part), true, false, 0, |a, b| a + b)));
    add("packed ids", packed.ids()?, kept_lengths.iter().enumerate().flat_map(|(k, n)| vec![k as i64; *n as usize]).collect());

    // Moves within segments.
    let reverse = element_line(&a.every(|part| (0..part.len() as i64).rev().collect()), Element::I32)?;
    let moved = segments.permute(&[&x], &reverse)?;
    add("permute", moved.values[0].clone(), a.every(|part| part.iter().rev().copied().collect()));
    add("permute outside", moved.outside.clone(), vec![0]);
    let index = other_line(&b.values, Element::I32)?;
    let gathered = segments.gather(&[&x], &other, &index)?;
    let at = |part: &[i64], i: i64| usize::try_from(i).ok().and_then(|i| part.get(i)).copied();
    let pairs: Vec<(&[i64], &[i64])> = a.parts().into_iter().zip(b.parts()).collect();
    let expected = pairs.iter().flat_map(|(part, at_places)| at_places.iter().map(|i| at(part, *i).unwrap_or(0)));
    add("gather", gathered.values[0].clone(), expected.collect());
    let outside = pairs.iter().any(|(part, places)| places.iter().any(|i| at(part, *i).is_none()));
    add("gather outside", gathered.outside.clone(), vec![i64::from(outside)]);
    for descending in [false, true] {
        let sorted = segments.sort(&[(&x, SortKey { descending, bits: None })], &[&double])?;
        let order = |part: &[i64]| {
            let mut part = part.to_vec();
            part.sort_unstable();
            if descending {
                part.reverse();
            }
            part
        };
        add("sort", sorted[0].clone(), a.every(order));
        add("sort doubles", sorted[1].clone(), a.every(|part| order(part).iter().map(|x| 2 * x).collect()));
        add("rank", segments.rank(&x, descending, Element::I32)?, a.every(|part| ranks(part, descending)));
    }

    // Two descriptors.
    let (joined, lines) = segments.concatenate(&other, &[(&x, &y)])?;
    add("concatenate", lines[0].clone(), pairs.iter().flat_map(|(a, b)| [*a, *b].concat()).collect());
    add(
        "concatenate ids",
        joined.ids()?,
        pairs.iter().enumerate().flat_map(|(k, (a, b))| vec![k as i64; a.len() + b.len()]).collect(),
    );
    let (_, lines) = segments.interleave(&other, &[(&x, &y)])?;
    let by_turns = |a: &[i64], b: &[i64]| {
        let longer = a.len().max(b.len());
        (0..longer).flat_map(|i| [a.get(i), b.get(i)]).flatten().copied().collect::<Vec<i64>>()
    };
    add("interleave", lines[0].clone(), pairs.iter().flat_map(|(a, b)| by_turns(a, b)).collect());

    // Single elements.
    let first = segments.first(&[&x])?;
    let any_empty = i64::from(lengths.contains(&0));
    add("first", first.values[0].clone(), a.each(|part| part.first().copied().unwrap_or(0)));
    add("first outside", first.outside.clone(), vec![any_empty]);
    add("last", segments.last(&[&x])?.values[0].clone(), a.each(|part| part.last().copied().unwrap_or(0)));
    let ones = segment_line(&vec![1; lengths.len()], Element::U8)?;
    add("extract", segments.extract(&[&x], &ones)?.values[0].clone(), a.each(|part| part.get(1).copied().unwrap_or(0)));
    let expected: Vec<Vec<i64>> = a
        .parts()
        .iter()
        .zip(&per_segment)
        .map(|(part, v)| {
            let mut part = part.to_vec();
            part.get_mut(1).into_iter().for_each(|x| *x = *v);
            part
        })
        .collect();
    add("replace", segments.replace(&x, &ones, &values)?.values[0].clone(), expected.concat());

    // Whole segments.
    let last = lengths.len() as i64 - 1;
    let numbers = line(context, &[last, 0, last / 2, last / 2, 7000], Element::I32)?;
    let parts = a.parts();
    let expected = [last, 0, last / 2, last / 2].map(|k| parts[k as usize]).concat();
    let (taken, lines) = segments.take(&numbers, Total::Within(2 * total + 3), &[&x])?;
    add("take", lines[0].clone(), expected.clone());
    add("take sums", taken.reduce(&[(&lines[0], Combine::Sum)])?.remove(0), {
        let mut sums: Vec<i64> = [last, 0, last / 2, last / 2].map(|k| parts[k as usize].iter().sum()).to_vec();
        sums.push(0);
        sums
    });
    if known == Known::Host {
        let half = lengths.len() / 2;
        let outer = Segments::from_lengths(
            &line(context, &[half as i64, (lengths.len() - half) as i64], Element::I64)?,
            Total::Host(lengths.len()),
        )?;
        let merged = segments.merged(&outer)?.reduce(&[(&x, Combine::Sum)])?.remove(0);
        add("merged", merged, vec![parts[..half].concat().iter().sum(), parts[half..].concat().iter().sum()]);
    }
    Ok(all)
}

#[test]
fn operations_are_those_of_loops() -> Result<()> {
    for (name, device) in [("interp", interp()), ("cpu", cpu())] {
        let context = Context::new(&device);
        for known in [Known::Host, Known::Device] {
            // Interpretation is slow for some cases, compilation for others.
            let left_out = |ragged: &str| match (name, known) {
                ("interp", _) => ragged == "tiny",
                (_, known) => ragged == "empty" && known == Known::Host,
            };
            for (ragged, lengths) in raggedness(50).into_iter().filter(|(ragged, _)| !left_out(ragged)) {
                let cases = cases(&context, &lengths, known)?;
                let nodes: Vec<Node> = cases.iter().map(|(_, node, _)| node.clone()).collect();
                let naive: Option<Vec<_>> =
                    (name == "interp").then(|| nodes.iter().map(naive::evaluate).collect::<Result<_>>()).transpose()?;
                context.evaluate(&nodes)?;
                for (number, (case, node, expected)) in cases.iter().enumerate() {
                    assert_eq!(found(node)?, *expected, "{case}, {name}, {ragged}, {known:?}");
                    if let Some(naive) = &naive {
                        assert_eq!(node.read()?, naive[number], "{case}, naive, {ragged}, {known:?}");
                    }
                }
            }
        }
    }
    Ok(())
}

/// There are more segments and elements than in one block, part or tile.
#[test]
fn thousands_of_segments() -> Result<()> {
    let context = Context::new(&cpu());
    let tiny = numbers(4000, 12).into_iter().map(|n| (n % 7) as usize);
    let lengths: Vec<usize> = tiny.chain([20_000]).chain(vec![0; 4000]).chain(vec![1; 500]).collect();
    let data = Ragged::new(&lengths, 13);
    let x = line(&context, &data.values, Element::I64)?;
    let lengths = line(&context, &lengths.iter().map(|n| *n as i64).collect::<Vec<_>>(), Element::I32)?;
    let segments = Segments::from_lengths(&lengths, Total::Unknown)?;
    let flags = Node::elementwise(Elementwise::Compare(CompareOp::Gt), &[&x, &number(&context, 0i64)?])?;
    let (packed, lines) = segments.pack(&flags, &[&x])?;
    let sums = segments.reduce(&[(&x, Combine::Sum)])?.remove(0);
    let kept = packed.reduce(&[(&lines[0], Combine::Sum)])?.remove(0);
    let running = packed.scan(&[(&lines[0], Combine::Sum)], true, Direction::Forwards)?.remove(0);
    let spread = segments.distribute(&sums)?;
    context.evaluate(&[sums.clone(), kept.clone(), running.clone(), spread.clone()])?;
    let positive = |part: &[i64]| part.iter().copied().filter(|x| *x > 0).collect::<Vec<i64>>();
    assert_eq!(found(&sums)?, data.each(|part| part.iter().sum()));
    assert_eq!(found(&kept)?, data.each(|part| positive(part).iter().sum()));
    assert_eq!(found(&running)?, data.every(|part| prefixes(&positive(part), true, false, 0, |a, b| a + b)));
    assert_eq!(found(&spread)?, data.every(|part| vec![part.iter().sum(); part.len()]));
    Ok(())
}

/// Offsets of a short line have 32 bits, so tiny segments read little besides their elements. Public forms
/// have 64 bits.
#[test]
fn offsets_from_lengths_are_narrow() -> Result<()> {
    let context = Context::new(&interp());
    let (count, total) = (100i64, 250usize);
    let lengths: Vec<i64> = (0..count).map(|number| 2 + number % 2).collect();
    let x = line(&context, &numbers(total, 1), Element::I32)?;
    let segments = Segments::from_lengths(&line(&context, &lengths, Element::I32)?, Total::Host(total))?;
    let sums = || segments.reduce(&[(&x, Combine::Sum)]);
    context.evaluate(&sums()?)?;
    let plan = context.explain(&sums()?)?;
    let most = 4 * total as u64 + 4 * (count as u64 + 1);
    assert_eq!(plan.kernels.len(), 1);
    assert!(plan.kernels[0].bytes_read <= most, "{} bytes", plan.kernels[0].bytes_read);
    // Offsets are stored in the form that kernels read: no code for edges.
    assert!(!plan.kernels[0].interior);
    assert_eq!(found(&segments.lengths()?)?, lengths);
    let forms = [segments.lengths()?, segments.offsets()?, segments.starts()?, segments.ends()?, segments.places()?];
    assert!(forms.iter().all(|form| form.ty().element() == Element::I64));
    Ok(())
}

/// Offsets that a plan has computed are an input of a function and a result of it, so they are not computed
/// twice. An unused input is not computed.
#[test]
fn templates_take_and_give_offsets() -> Result<()> {
    let context = Context::new(&interp());
    let (lengths, total) = (vec![2i64, 0, 3, 1], 6usize);
    let x = line(&context, &numbers(total, 1), Element::I32)?;
    let counts = line(&context, &lengths, Element::I32)?;
    let doubled = Node::elementwise(Elementwise::Binary(BinaryOp::Add), &[&counts, &counts])?;
    let template = context.template(&[counts.clone(), x.clone(), doubled.clone()], |symbols| {
        let segments = Segments::from_lengths(&symbols[0], Total::Host(total))?;
        assert!(segments.stored_forms().is_none() && segments.kept_forms(&[symbols[1].clone()]).is_none());
        let sums = segments.reduce(&[(&symbols[1], Combine::Sum)])?.remove(0);
        let forms = segments.kept_forms(std::slice::from_ref(&sums)).expect("offsets");
        Ok(vec![sums, forms.offsets])
    })?;
    let kernels = context.statistics().kernels;
    let results = template.call(&[counts.clone(), x.clone(), doubled.clone()])?;
    assert!(template.needs(0) && template.needs(1) && !template.needs(2) && doubled.buffer().is_none());
    assert_eq!(context.statistics().kernels - kernels, template.kernels());
    let forms = StoredForms { offsets: results[1].clone(), ids: None, heads: None };
    let segments = Segments::from_stored_forms(&forms, total)?;
    assert!(segments.stored_forms().is_some_and(|forms| forms.offsets.is_same(&results[1])));
    assert_eq!(found(&segments.lengths()?)?, lengths);
    let sums = segments.reduce(&[(&x, Combine::Sum)])?.remove(0);
    assert_eq!(context.launches(std::slice::from_ref(&sums))?, 1);
    assert_eq!(found(&sums)?, found(&results[0])?);
    assert_eq!(context.launches(&[sums])?, 0);
    Ok(())
}

/// Offsets made from lengths, from flags, or by a pack are read back from a text unchanged: they are clamped
/// to the line already.
#[test]
fn texts_of_segments_hold_offsets_once() -> Result<()> {
    let context = Context::new(&interp());
    let (long, total) = (1usize << 33, 12usize);
    let lengths = line(&context, &[3, 0, 4, 5], Element::I32)?;
    let x = line(&context, &numbers(total, 1), Element::I32)?;
    let far = Node::fill(&context, Shape::from(long), &[Literal::from(1i32)])?;
    let flags = greater(&x, 1 << 30)?;
    let of_lengths = Segments::from_lengths(&lengths, Total::Host(total))?;
    let wide = Segments::from_lengths(&lengths, Total::Host(long))?;
    let of_heads = Segments::from_heads(&flags, Some(4))?;
    let (both, joined) = of_lengths.interleave(&of_lengths, &[(&x, &x)])?;
    let cases = [("lengths", &of_lengths, &x), ("wide", &wide, &far), ("heads", &of_heads, &x), ("joined", &both, &joined[0])];
    for (name, segments, line) in cases {
        let nodes = segments.reduce(&[(line, Combine::Sum), (line, Combine::Max)])?;
        let text = print(&nodes)?;
        let mut sources = Sources::new();
        let id = sources.add("segments.graph", text.as_str());
        let read = parse(&sources, id, &context, &Vocabulary::default());
        let read = read.unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong)));
        let again: Vec<Node> = read.outputs.into_iter().map(|(_, node)| node).collect();
        assert_eq!(print(&again)?, text, "{name}");
    }
    // Two functions with one name, for offsets of two types: a text renames the second one.
    let offsets = |element: Element| line(&context, &[0, 3, 7, 12], element);
    let nodes = [Element::I32, Element::I64].map(|element| x.segmented_reduce(&offsets(element)?, Combine::Sum));
    let nodes = nodes.into_iter().collect::<Result<Vec<Node>>>()?;
    let text = print(&nodes)?;
    let mut sources = Sources::new();
    let id = sources.add("types.graph", text.as_str());
    let read = parse(&sources, id, &context, &Vocabulary::default());
    let read = read.unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong)));
    assert!(text.contains("offset_2"), "{text}");
    assert_eq!(print(&read.outputs.into_iter().map(|(_, node)| node).collect::<Vec<_>>())?, text);
    // The end has another number of elements, so the offsets are clamped again.
    let text = print(&of_lengths.reduce(&[(&x, Combine::Sum)])?)?.replace("fill(12)", "fill(13)");
    let mut sources = Sources::new();
    let id = sources.add("other.graph", text.as_str());
    let read = parse(&sources, id, &context, &Vocabulary::default());
    let read = read.unwrap_or_else(|wrong| panic!("{}", sources.render_all(&wrong)));
    assert_ne!(print(&[read.outputs[0].1.clone()])?, text);
    Ok(())
}

/// Returns the names of the kernels of a plan.
fn kernels(context: &Context, nodes: &[Node]) -> Result<Vec<String>> {
    Ok(context.explain(nodes)?.kernels.iter().map(|kernel| kernel.name.clone()).collect())
}

#[test]
fn work_on_elements_is_fused_into_all() -> Result<()> {
    for device in [interp(), counting_gpu().0] {
        let context = Context::new(&device);
        let offsets = line(&context, &[0, 3, 3, 900, 1000], Element::I32)?;
        let x = line(&context, &numbers(1000, 1), Element::I32)?;
        let double = binary(BinaryOp::Add, &x, &x)?;
        let made = || Segments::from_offsets(&offsets, Total::Host(1000));
        let plan = |nodes: &[Node]| kernels(&context, nodes);
        // Several reductions, with work before and after them.
        let both = made()?.reduce(&[(&double, Combine::Sum), (&x, Combine::Max)])?;
        assert_eq!(plan(&[binary(BinaryOp::Mul, &both[0], &both[1])?])?, ["segmented reduce"]);
        let segments = made()?;
        let least = segments.extreme(&double, Extreme::Least, Element::I32)?;
        let sum = segments.reduce(&[(&x, Combine::Sum)])?.remove(0);
        assert_eq!(plan(&[binary(BinaryOp::Add, &least, &least)?, sum])?, ["segmented reduce"]);
        // Several scans of both kinds.
        let scans = made()?.scan(&[(&double, Combine::Sum), (&x, Combine::Max)], false, Direction::Forwards)?;
        assert_eq!(plan(&[binary(BinaryOp::Mul, &scans[0], &scans[1])?])?, ["segment numbers", "scan"]);
        // A filter, then a sum: nothing is packed, and the same kernel computes the lengths.
        let segments = made()?;
        let (packed, lines) = segments.pack(&greater(&double, 5)?, &[&x, &double])?;
        let shift = segments.reduce(&[(&x, Combine::Min)])?.remove(0);
        context.evaluate(std::slice::from_ref(&shift))?;
        let squares = binary(BinaryOp::Mul, &lines[0], &lines[1])?;
        let sums = packed.reduce(&[(&squares, Combine::Sum)])?.remove(0);
        assert_eq!(plan(std::slice::from_ref(&sums))?, ["segmented reduce"]);
        assert_eq!(plan(&[sums, packed.lengths()?])?, ["segmented reduce"]);
        // Both lines are packed at once.
        assert_eq!(plan(&lines)?, ["pack"]);
        // One value for each segment; forms are not computed twice.
        let moved = binary(BinaryOp::Sub, &x, &segments.distribute(&shift)?)?;
        assert_eq!(plan(std::slice::from_ref(&moved))?, ["segment numbers"]);
        context.evaluate(std::slice::from_ref(&moved))?;
        let moved = binary(BinaryOp::Sub, &double, &segments.distribute(&shift)?)?;
        assert_eq!(plan(std::slice::from_ref(&moved))?, ["map"]);
        context.evaluate(&[segments.offsets()?])?;
        let gathered = segments.gather(&[&x], &segments, &double)?;
        assert_eq!(plan(&gathered.values)?, ["map"]);
        assert_eq!(plan(&[gathered.outside])?, ["reduce"]);
        assert_eq!(plan(&segments.first(&[&double])?.values)?, ["map"]);
        assert_eq!(plan(&[segments.index(&shift, &shift)?])?, ["map"]);
        assert_eq!(plan(&segments.permute(&[&double], &x)?.values)?, ["scatter"]);
        let key = SortKey { descending: false, bits: None };
        assert_eq!(plan(&segments.sort(&[(&double, key)], &[])?)?, ["sort"]);
        assert_eq!(plan(&[segments.rank(&double, false, Element::I32)?])?, ["sort", "scatter"]);
        // Clones share forms. The forms are freed with the last clone.
        let segments = made()?;
        let (heads, clone) = (segments.heads()?, segments.clone());
        let scan = |segments: &Segments| segments.scan(&[(&x, Combine::Sum)], true, Direction::Forwards);
        context.evaluate(&scan(&segments)?)?;
        drop(segments);
        assert!(heads.buffer().is_some());
        assert_eq!(plan(&scan(&clone)?)?, ["scan"]);
        let segments = made()?;
        let (heads, sums) = (segments.heads()?, scan(&segments)?);
        drop(segments);
        context.evaluate(&sums)?;
        assert!(heads.buffer().is_none());
    }
    Ok(())
}

/// A reduction of segments knows the segment of each element: reads of values of segments, and indices within
/// segments, need no segment numbers in memory.
#[test]
fn reductions_know_segments() -> Result<()> {
    let context = Context::new(&cpu());
    let tiny = numbers(2000, 12).into_iter().map(|n| (n % 7) as usize);
    let lengths: Vec<usize> = tiny.chain([9000, 0, 40, 300]).chain(vec![0; 2000]).chain(vec![1; 500]).collect();
    let data = Ragged::new(&lengths, 13);
    let total = data.values.len();
    let x = line(&context, &data.values, Element::I64)?;
    let lengths = line(&context, &lengths.iter().map(|n| *n as i64).collect::<Vec<_>>(), Element::I32)?;
    for known in [Total::Host(total), Total::Within(total + 77)] {
        let segments = Segments::from_lengths(&lengths, known)?;
        let line = match segments.total_length() {
            Some(length) => unknown(&context, &data.values, Element::I64, length)?,
            None => x.clone(),
        };
        let least = segments.reduce(&[(&line, Combine::Min)])?.remove(0);
        let above = binary(BinaryOp::Sub, &line, &segments.distribute(&least)?)?;
        let weighed = binary(BinaryOp::Mul, &above, &segments.places()?)?;
        let found_in = segments.extreme(&above, Extreme::Greatest, Element::I64)?;
        let mut nodes = segments.reduce(&[(&above, Combine::Sum), (&weighed, Combine::Sum)])?;
        nodes.push(found_in);
        drop(segments);
        let names = kernels(&context, &nodes)?;
        assert!(!names.contains(&"segment numbers".to_owned()), "{names:?}");
        assert_eq!(names.iter().filter(|name| *name == "segmented reduce").count(), 2, "{names:?}");
        context.evaluate(&nodes)?;
        let least = |part: &[i64]| part.iter().copied().min().unwrap_or(0);
        let above = |part: &[i64]| part.iter().map(|x| x.wrapping_sub(least(part))).collect::<Vec<i64>>();
        let sum = |values: Vec<i64>| values.into_iter().fold(0i64, i64::wrapping_add);
        let weighed = |part: &[i64]| above(part).iter().zip(0..).map(|(x, place)| x.wrapping_mul(place)).collect::<Vec<i64>>();
        let place = |part: &[i64]| part.iter().position(|x| Some(x) == part.iter().max()).map_or(-1, |place| place as i64);
        assert_eq!(found(&nodes[0])?, data.each(|part| sum(above(part))));
        assert_eq!(found(&nodes[1])?, data.each(|part| sum(weighed(part))));
        assert_eq!(found(&nodes[2])?, data.each(place));
    }
    Ok(())
}

/// Work after patterns whose length only the device knows is fused into their kernel, and nothing waits.
#[test]
fn nothing_waits_for_totals_of_the_device() -> Result<()> {
    let (device, counts) = counting_gpu();
    let context = Context::new(&device);
    let lengths = raggedness(50).remove(3).1;
    let cases = cases(&context, &lengths, Known::Device)?;
    counts.waits.store(0, Ordering::Relaxed);
    let nodes: Vec<Node> = cases.iter().map(|(_, node, _)| node.clone()).collect();
    context.evaluate(&nodes)?;
    assert_eq!(counts.waits.load(Ordering::Relaxed), 0);
    for (case, node, expected) in &cases {
        assert_eq!(found(node)?, *expected, "{case}");
    }
    let x = line(&context, &numbers(500, 2), Element::I32)?;
    let y = x.pack(&greater(&x, 5)?)?;
    context.evaluate(std::slice::from_ref(&y))?;
    let offsets = line(&context, &[0, 3, 3, 20], Element::I32)?;
    let segments = Segments::from_offsets(&offsets, Total::of(&y))?;
    context.evaluate(&[segments.heads()?])?;
    let scan = segments.scan(&[(&y, Combine::Sum)], true, Direction::Forwards)?.remove(0);
    assert_eq!(kernels(&context, &[binary(BinaryOp::Mul, &scan, &y)?])?, ["scan"]);
    Ok(())
}

/// Reductions and scans of all types.
#[test]
fn long_segments_are_sorted_beside_short_ones() -> Result<()> {
    // Lanes of a CPU sort each short segment separately, and much longer ones together.
    let lengths: Vec<i64> = (0..300).map(|i| if i % 70 == 33 { 20 * i } else { i % 7 }).collect();
    let total = lengths.iter().sum::<i64>() as usize;
    let (longest, values) = (lengths.iter().copied().max().unwrap_or(0), numbers(total, 8));
    let context = Context::new(&cpu());
    for element in [Element::I32, Element::I64, Element::F32] {
        let segments =
            Segments::from_lengths(&line(&context, &lengths, Element::I32)?, Total::Host(total))?.no_longer_than(longest);
        let values: Vec<i64> = values.iter().map(|value| value % 5000).collect();
        let x = line(&context, &values, element)?;
        let y = line(&context, &(0..total as i64).collect::<Vec<i64>>(), Element::I32)?;
        for descending in [false, true] {
            let key = SortKey { descending, bits: None };
            let (mut want, mut order, mut start) = (vec![], vec![], 0usize);
            for length in &lengths {
                let mut places: Vec<usize> = (start..start + *length as usize).collect();
                places.sort_by_key(|place| if descending { -values[*place] } else { values[*place] });
                want.extend(places.iter().map(|place| values[*place]));
                order.extend(places.iter().map(|place| *place as i64));
                start += *length as usize;
            }
            assert_eq!(found(&segments.sort(&[(&x, key)], &[])?[0])?, want);
            assert_eq!(found(&segments.sort(&[(&x, key)], &[&y])?[1])?, order);
        }
    }
    Ok(())
}

#[test]
fn no_segments_with_a_total_of_the_device() -> Result<()> {
    for device in [interp(), cpu()] {
        let context = Context::new(&device);
        let length = Length::new(&number(&context, 0i64)?, 5)?;
        let none = line(&context, &[], Element::I32)?;
        let segments = Segments::from_lengths(&none, Total::Device(length))?;
        assert_eq!(found(&segments.distribute(&none)?)?, Vec::<i64>::new());
        assert_eq!(found(&segments.places()?)?, Vec::<i64>::new());
    }
    Ok(())
}

#[test]
fn elements_of_many_types() -> Result<()> {
    let context = Context::new(&interp());
    let data = Ragged::new(&[0, 5, 1, 0, 0, 40, 3], 4);
    let lengths = line(&context, &data.lengths.iter().map(|n| *n as i64).collect::<Vec<_>>(), Element::U8)?;
    let segments = Segments::from_lengths(&lengths, Total::Unknown)?;
    for element in [Element::I32, Element::I64, Element::F32, Element::F64, Element::U8, Element::Bool] {
        let is_bool = element == Element::Bool;
        let held = |x: &i64| match element {
            Element::U8 => x & 255,
            Element::Bool => x & 1,
            _ => *x,
        };
        let values: Vec<i64> = data.values.iter().map(held).collect();
        let integers = line(&context, &values, if is_bool { Element::U8 } else { Element::I64 })?;
        let x = Node::elementwise(Elementwise::Convert(element), &[&integers])?;
        let data = Ragged { lengths: data.lengths.clone(), values };
        let (combine, nothing) = if is_bool { (Combine::Any, 0) } else { (Combine::Sum, 0) };
        let sum = |a: i64, b: i64| if is_bool { a | b } else { held(&(a + b)) };
        let sums = segments.reduce(&[(&x, combine.clone())])?.remove(0);
        assert_eq!(found(&sums)?, data.each(|part| part.iter().fold(nothing, |a, b| sum(a, *b))), "{element}");
        for direction in [Direction::Forwards, Direction::Backwards] {
            let scan = segments.scan(&[(&x, combine.clone())], false, direction)?.remove(0);
            let backwards = direction == Direction::Backwards;
            assert_eq!(found(&scan)?, data.every(|part| prefixes(part, false, backwards, nothing, sum)), "{element}");
        }
        let flags = Node::elementwise(Elementwise::Compare(CompareOp::Gt), &[&integers, &integers.reduce(Combine::Min, &[0])?])?;
        let (packed, lines) = segments.pack(&flags, &[&x])?;
        let least = data.values.iter().copied().min().unwrap_or(0);
        let kept = |part: &[i64]| part.iter().copied().filter(|x| *x > least).collect::<Vec<i64>>();
        assert_eq!(found(&lines[0])?, data.every(kept), "{element}");
        let sums = packed.reduce(&[(&lines[0], combine)])?.remove(0);
        assert_eq!(found(&sums)?, data.each(|part| kept(part).into_iter().fold(nothing, sum)), "{element}");
    }
    // Vectors move as a whole.
    let x = line(&context, &data.values, Element::F32)?;
    let pairs = Node::elementwise(Elementwise::Vector, &[&x, &x])?;
    let scan = segments.scan(&[(&pairs, Combine::Sum)], false, Direction::Backwards)?.remove(0);
    let expected = data.every(|part| prefixes(part, false, true, 0, |a, b| a + b));
    assert_eq!(found(&scan)?, expected.iter().flat_map(|x| [*x, *x]).collect::<Vec<_>>());
    Ok(())
}

#[test]
fn what_does_not_fit_is_told() -> Result<()> {
    let context = Context::new(&interp());
    let x = line(&context, &numbers(10, 1), Element::I32)?;
    let told = |result: Result<Node>| result.err().map(|error| error.to_string()).unwrap_or_default();
    let segments = Segments::from_lengths(&line(&context, &[4, 3], Element::I32)?, Total::Host(7))?;
    assert_eq!(
        told(segments.reduce(&[(&x, Combine::Sum)]).map(|mut sums| sums.remove(0))),
        "`segmented sum`: the shapes [10] and [7] do not fit together"
    );
    assert_eq!(told(segments.distribute(&x)), "`distribute`: the shapes [10] and [2] do not fit together");
    let other = Segments::from_lengths(&line(&context, &[10], Element::I32)?, Total::Host(10))?;
    assert_eq!(
        told(segments.concatenate(&other, &[]).map(|_| x.clone())),
        "`concatenate`: the shapes [2] and [1] do not fit together"
    );
    assert_eq!(told(other.pack(&x, &[]).map(|_| x.clone())), "`segmented pack`: the types `bool` and `i32` do not fit together");
    let floats = line(&context, &[1], Element::F32)?;
    assert_eq!(told(Segments::from_lengths(&floats, Total::Host(1)).map(|_| x.clone())), "`segments` does not take `f32`");
    assert_eq!(told(other.sort(&[], &[]).map(|_| x.clone())), "`segmented sort` of an array of shape [10]: there are no keys");
    // Invalid lengths and offsets cause no access outside.
    for lengths in [[-5, 3, 900, 2], [i32::MAX.into(), i32::MAX.into(), i32::MAX.into(), 1], [1, 1, 1, 1]] {
        let segments = Segments::from_lengths(&line(&context, &lengths, Element::I32)?, Total::Host(10))?;
        let lengths = found(&segments.lengths()?)?;
        assert_eq!(lengths.iter().sum::<i64>(), 10);
        let sums = found(&segments.reduce(&[(&x, Combine::Sum)])?.remove(0))?;
        assert_eq!(
            sums.iter().fold(0i32, |a, b| a.wrapping_add(*b as i32)),
            found(&x)?.iter().fold(0i32, |a, b| a.wrapping_add(*b as i32))
        );
    }
    let offsets = line(&context, &[5, -3, 99, 2, 7], Element::I32)?;
    let wild = Segments::from_offsets(&offsets, Total::Host(10))?;
    context.evaluate(&[
        wild.ids()?,
        wild.heads()?,
        wild.reduce(&[(&x, Combine::Sum)])?.remove(0),
        wild.distribute(&wild.lengths()?)?,
    ])?;
    Ok(())
}
