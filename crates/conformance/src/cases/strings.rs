//! Strings, dynamic programming tables, and backtracking.

use crate::compare::{holds, same};
use crate::inputs::Inputs;
use crate::trial::{Outcome, Trial, args};

/// Returns `n` letters out of the first few of the alphabet.
fn letters(r: &mut Inputs, n: usize, of: i64) -> Vec<u8> {
    r.many(n, |r| b'a' + r.below(0, of) as u8)
}

pub(crate) fn string_search(t: &mut Trial<'_>) -> Outcome {
    let text = letters(&mut Inputs::new(70), 900, 2);
    let pattern = b"abbab".to_vec();
    let (n, m) = (text.len(), pattern.len());
    let (dt, dp, found) = (t.upload(&text)?, t.upload(&pattern)?, t.output::<u8>(n)?);
    t.launch("string_search", 8, 128, args![dt, n as i32, dp, m as i32, found])?;
    let want: Vec<u8> = (0..n).map(|i| text[i..].starts_with(&pattern) as u8).collect();
    same("matches", &t.download(&found)?, &want)?;

    let count = t.zeros::<i32>(1)?;
    t.launch("string_search_hash", 2, 32, args![dt, n as i32, dp, m as i32, 20i32, count])?;
    same("count", &t.download(&count)?, &[want.iter().map(|w| i32::from(*w)).sum()])
}

pub(crate) fn edit_distance(t: &mut Trial<'_>) -> Outcome {
    let (pairs, la, lb) = (4, 40, 33);
    let mut r = Inputs::new(71);
    let (a, b) = (letters(&mut r, pairs * la, 3), letters(&mut r, pairs * lb, 3));
    let (da, db, out) = (t.upload(&a)?, t.upload(&b)?, t.output::<i32>(pairs)?);
    t.launch("edit_distance", pairs as u32, 16, args![da, la as i32, db, lb as i32, out])?;
    let distance = |a: &[u8], b: &[u8]| {
        let mut row: Vec<i32> = (0..=b.len() as i32).collect();
        for (i, x) in a.iter().enumerate() {
            let mut corner = row[0];
            row[0] = i as i32 + 1;
            for (j, y) in b.iter().enumerate() {
                let changed = corner + i32::from(x != y);
                corner = row[j + 1];
                row[j + 1] = changed.min(row[j] + 1).min(row[j + 1] + 1);
            }
        }
        row[b.len()]
    };
    let want: Vec<i32> = a.chunks(la).zip(b.chunks(lb)).map(|(a, b)| distance(a, b)).collect();
    same("distances", &t.download(&out)?, &want)
}

pub(crate) fn knapsack(t: &mut Trial<'_>) -> Outcome {
    let (items, capacity) = (15, 150);
    let mut r = Inputs::new(72);
    let weight = r.i32s(items, 1, 40);
    let value: Vec<u32> = r.many(items, |r| r.below(1, 100) as u32);
    let (dw, dv, best) = (t.upload(&weight)?, t.upload(&value)?, t.output::<u32>(capacity + 1)?);
    t.launch("knapsack", 1, 64, args![dw, dv, items as i32, capacity as i32, best])?;
    // Every subset of the items.
    let mut want = vec![0u32; capacity + 1];
    for subset in 0u32..1 << items {
        let chosen = || (0..items).filter(|i| subset >> i & 1 == 1);
        let load: i32 = chosen().map(|i| weight[i]).sum();
        if load as usize <= capacity {
            let worth = chosen().map(|i| value[i]).sum();
            want[load as usize] = want[load as usize].max(worth);
        }
    }
    (1..=capacity).for_each(|c| want[c] = want[c].max(want[c - 1]));
    same("best", &t.download(&best)?, &want)
}

pub(crate) fn parse_numbers(t: &mut Trial<'_>) -> Outcome {
    let mut r = Inputs::new(73);
    let numbers = r.i32s(60, -99_999, 99_999);
    let mut text = String::new();
    for v in &numbers {
        text.push_str([", ", ";", " x= ", "\n"][r.below(0, 4) as usize]);
        text.push_str(&v.to_string());
    }
    let (dt, values) = (t.upload(text.as_bytes())?, t.output::<i32>(numbers.len())?);
    let count = t.output::<i32>(1)?;
    t.launch("parse_numbers", 1, 128, args![dt, text.len() as i32, values, count])?;
    same("count", &t.download(&count)?, &[numbers.len() as i32])?;
    same("values", &t.download(&values)?, &numbers)
}

pub(crate) fn bracket_depth(t: &mut Trial<'_>) -> Outcome {
    for (text, balanced) in
        [("f(a[1], {b: (c)}) + [d]", 1), ("((x)", 0), ("a) + (b", 0), ("", 1), ("(((([[[[{{{{}}}}]]]]))))", 1)]
    {
        // A buffer has at least one element.
        let padded = format!("{text} ");
        let (dt, depth, ok) = (t.upload(padded.as_bytes())?, t.output::<i8>(padded.len())?, t.output::<i32>(1)?);
        t.launch("bracket_depth", 1, 256, args![dt, text.len() as i32, depth, ok])?;
        same("balanced", &t.download(&ok)?, &[balanced])?;
        let mut level = 0i8;
        let want: Vec<i8> = text
            .chars()
            .map(|c| {
                level += i8::from("([{".contains(c)) - i8::from(")]}".contains(c));
                level
            })
            .collect();
        same("depth", &t.download(&depth)?[..text.len()], &want)?;
    }
    Ok(())
}

pub(crate) fn run_length(t: &mut Trial<'_>) -> Outcome {
    let n = 230;
    let mut input: Vec<u8> = Vec::new();
    let mut r = Inputs::new(74);
    while input.len() < n {
        let (symbol, length) = (r.below(0, 4) as u8, r.below(1, 12) as usize);
        input.extend(vec![symbol; length]);
    }
    input.truncate(n);
    let mut runs: Vec<(u8, i32)> = Vec::new();
    for v in &input {
        match runs.last_mut() {
            Some((symbol, length)) if symbol == v => *length += 1,
            _ => runs.push((*v, 1)),
        }
    }
    let (symbols, lengths): (Vec<u8>, Vec<i32>) = runs.iter().copied().unzip();
    let (di, ds, dl, dr) = (t.upload(&input)?, t.zeros::<u8>(256)?, t.zeros::<i32>(256)?, t.output::<i32>(1)?);
    t.launch("run_length_encode", 1, 256, args![di, n as i32, ds, dl, dr])?;
    same("runs", &t.download(&dr)?, &[runs.len() as i32])?;
    same("symbols", &t.download(&ds)?[..runs.len()], &symbols)?;
    same("lengths", &t.download(&dl)?[..runs.len()], &lengths)?;

    let mut start = vec![0];
    lengths.iter().for_each(|l| start.push(start[start.len() - 1] + l));
    let (start, out) = (t.upload(&start)?, t.output::<u8>(n)?);
    t.launch("run_length_decode", 4, 64, args![ds, start, runs.len() as i32, out])?;
    same("decoded", &t.download(&out)?, &input)
}

pub(crate) fn queens(t: &mut Trial<'_>) -> Outcome {
    // Known counts of solutions.
    for (n, want) in [(5u32, 10u32), (6, 4), (7, 40)] {
        let count = t.zeros::<u32>(1)?;
        t.launch("queens", 1, n * n, args![n as i32, count])?;
        same("solutions", &t.download(&count)?, &[want])?;
    }
    Ok(())
}

/// Returns a solved board: a pattern whose digits, rows within bands and columns within stacks are shuffled.
fn solved_board(r: &mut Inputs) -> Vec<u8> {
    let digits = r.permutation(9);
    let mut lines = || -> Vec<usize> {
        let bands = r.permutation(3);
        bands.iter().flat_map(|band| r.permutation(3).into_iter().map(move |line| band * 3 + line)).collect()
    };
    let (rows, columns) = (lines(), lines());
    let cell = |r: usize, c: usize| digits[(r * 3 + r / 3 + c) % 9] as u8 + 1;
    (0..81).map(|i| cell(rows[i / 9], columns[i % 9])).collect()
}

pub(crate) fn sudoku(t: &mut Trial<'_>) -> Outcome {
    let n = 6;
    let mut r = Inputs::new(75);
    let mut boards: Vec<u8> = Vec::new();
    for _ in 0..n {
        let mut board = solved_board(&mut r);
        r.permutation(81)[..40].iter().for_each(|i| board[*i] = 0);
        boards.extend(board);
    }
    // The last one has no solution: the open cell of its first row needs the 9 that its column already has.
    let last = boards.len() - 81;
    boards[last..last + 9].copy_from_slice(&[1, 2, 3, 4, 5, 6, 7, 8, 0]);
    boards[last + 17] = 9;
    (last + 9..last + 17).chain(last + 18..boards.len()).for_each(|i| boards[i] = 0);
    let (db, solved) = (t.upload(&boards)?, t.output::<u8>(n)?);
    t.launch("sudoku", 1, 32, args![db, n as i32, solved])?;
    same("solved", &t.download(&solved)?, &[1, 1, 1, 1, 1, 0])?;
    let answers = t.download(&db)?;
    for (board, given) in answers.chunks(81).zip(boards.chunks(81)).take(n - 1) {
        holds("given digits stay", given.iter().zip(board).all(|(g, b)| *g == 0 || g == b))?;
        for k in 0..9 {
            let unit = |cell: &dyn Fn(usize) -> usize| (0..9).fold(0, |set, i| set | 1 << board[cell(i)]);
            holds("row", unit(&|i| k * 9 + i) == 0x3fe)?;
            holds("column", unit(&|i| i * 9 + k) == 0x3fe)?;
            holds("box", unit(&|i| (k / 3 * 3 + i / 3) * 9 + k % 3 * 3 + i % 3) == 0x3fe)?;
        }
    }
    Ok(())
}
