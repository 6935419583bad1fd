// A scheduler in Rust: the order stays, every instruction gets a control word, by the facts that
// `orias-facts --annotate` adds. Nothing but the standard library; reads standard input, writes standard output.
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Read, Write};
use std::process::exit;

// ---------------------------------------------------------------- msgpack: values without floats and booleans
#[derive(Clone)]
enum Value {
    Nil,
    Int(i128), // holds i64 and u64
    Text(String),
    Bytes(Vec<u8>),
    Array(Vec<Value>),
    Map(BTreeMap<String, Value>), // written with sorted keys
}
use Value::{Array, Bytes, Int, Map, Nil, Text};

fn give_up(why: &str) -> ! {
    eprintln!("control: {why}");
    exit(1)
}

impl Value {
    fn int(&self) -> i64 {
        match self { Int(n) => *n as i64, _ => give_up("a number is wanted") }
    }
    fn text(&self) -> &str {
        match self { Text(t) => t, _ => give_up("a text is wanted") }
    }
    fn items(&self) -> &Vec<Value> {
        match self { Array(a) => a, _ => give_up("an array is wanted") }
    }
    fn items_mut(&mut self) -> &mut Vec<Value> {
        match self { Array(a) => a, _ => give_up("an array is wanted") }
    }
    fn field(&self, name: &str) -> &Value {
        match self { Map(m) if m.contains_key(name) => &m[name], _ => give_up(&format!("no field '{name}'")) }
    }
    fn field_mut(&mut self, name: &str) -> &mut Value {
        match self {
            Map(m) if m.contains_key(name) => m.get_mut(name).unwrap(),
            _ => give_up(&format!("no field '{name}'")),
        }
    }
}

struct Reader { data: Vec<u8>, at: usize }

impl Reader {
    fn take(&mut self, count: usize) -> &[u8] {
        if count > self.data.len() - self.at {
            give_up("the stream ends early");
        }
        self.at += count;
        &self.data[self.at - count..self.at]
    }
    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes).iter().fold(0, |n, b| n << 8 | u64::from(*b))
    }
    fn string(&mut self, count: usize) -> Value {
        match String::from_utf8(self.take(count).to_vec()) { Ok(t) => Text(t), Err(_) => give_up("a text that is no UTF-8") }
    }
    fn array(&mut self, count: usize) -> Value {
        Array((0..count).map(|_| self.value()).collect())
    }
    fn map(&mut self, count: usize) -> Value {
        Map((0..count).map(|_| (self.value().text().to_string(), self.value())).collect())
    }
    fn value(&mut self) -> Value {
        let tag = self.number(1) as usize;
        match tag {
            0x00..=0x7f => Int(tag as i128),
            0x80..=0x8f => self.map(tag & 15),
            0x90..=0x9f => self.array(tag & 15),
            0xa0..=0xbf => self.string(tag & 31),
            0xc0 => Nil,
            0xc4..=0xc6 => { let n = self.number(1 << (tag - 0xc4)) as usize; Bytes(self.take(n).to_vec()) }
            0xcc..=0xcf => Int(self.number(1 << (tag - 0xcc)).into()),
            0xd0 => Int((self.number(1) as i8).into()),
            0xd1 => Int((self.number(2) as i16).into()),
            0xd2 => Int((self.number(4) as i32).into()),
            0xd3 => Int((self.number(8) as i64).into()),
            0xd9..=0xdb => { let n = self.number(1 << (tag - 0xd9)) as usize; self.string(n) }
            0xdc | 0xdd => { let n = self.number(2 << (tag - 0xdc)) as usize; self.array(n) }
            0xde | 0xdf => { let n = self.number(2 << (tag - 0xde)) as usize; self.map(n) }
            0xe0..=0xff => Int(tag as i128 - 256),
            _ => give_up(&format!("a byte that no stream has: {tag}")),
        }
    }
}

fn put(out: &mut Vec<u8>, tag: usize, n: i128, bytes: usize) {
    out.push(tag as u8);
    out.extend_from_slice(&n.to_be_bytes()[16 - bytes..]);
}

// A length: in the tag below `small`, else behind one of three tags (`wide[0]` is 0 where there are two).
fn length(out: &mut Vec<u8>, n: usize, fix: usize, small: usize, wide: [usize; 3]) {
    match n {
        _ if n < small => put(out, fix | n, 0, 0),
        0..=0xff if wide[0] > 0 => put(out, wide[0], n as i128, 1),
        0..=0xffff => put(out, wide[1], n as i128, 2),
        _ => put(out, wide[2], n as i128, 4),
    }
}

fn write(out: &mut Vec<u8>, v: &Value) {
    match v {
        Nil => put(out, 0xc0, 0, 0),
        Int(n) => match *n {
            0..=0x7f => put(out, *n as usize, 0, 0),
            -32..=-1 => put(out, (*n & 0xff) as usize, 0, 0),
            0x80..=0xff => put(out, 0xcc, *n, 1),
            0x100..=0xffff => put(out, 0xcd, *n, 2),
            0x1_0000..=0xffff_ffff => put(out, 0xce, *n, 4),
            0x1_0000_0000.. => put(out, 0xcf, *n, 8),
            -0x80..=-33 => put(out, 0xd0, *n, 1),
            -0x8000..=-0x81 => put(out, 0xd1, *n, 2),
            -0x8000_0000..=-0x8001 => put(out, 0xd2, *n, 4),
            _ => put(out, 0xd3, *n, 8),
        },
        Text(t) => { length(out, t.len(), 0xa0, 32, [0xd9, 0xda, 0xdb]); out.extend_from_slice(t.as_bytes()) }
        Bytes(b) => { length(out, b.len(), 0, 0, [0xc4, 0xc5, 0xc6]); out.extend_from_slice(b) }
        Array(a) => { length(out, a.len(), 0x90, 16, [0, 0xdc, 0xdd]); a.iter().for_each(|x| write(out, x)) }
        Map(m) => {
            length(out, m.len(), 0x80, 16, [0, 0xde, 0xdf]);
            for (key, value) in m { write(out, &Text(key.clone())); write(out, value) }
        }
    }
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |c, b| {
        (0..8).fold(c ^ u32::from(*b), |c, _| c >> 1 ^ if c & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}

// ---------------------------------------------------------------- the scheduler
// An instruction is [[opcode, modifier...], dsts, srcs, guard, line, loc, ctl, uses, defs, attrs].
const NAME: usize = 0;
const CTL: usize = 6;
const ATTRS: usize = 9;

#[derive(Default, Clone)]
struct Counter { results: HashSet<String>, reads: HashSet<String> }

/// The control word under way, and the cycle at which the next instruction issues.
struct Word { stall: i64, results: i64, reads: i64, wait: i64 }

/// The names of the registers that an annotation lists.
fn registers(inst: &Value, side: &str) -> Vec<String> {
    inst.items()[ATTRS].field(side).items().iter()
        .map(|r| match r { Array(a) => a[0].text().to_string(), t => t.text().to_string() })
        .collect()
}

/// Put `more` cycles into a stall; 15 is the longest, 0 drains the pipe.
fn longer(stall: i64, more: i64) -> i64 {
    if stall == 0 || stall + more > 15 { 0 } else { stall + more }
}

fn schedule(block: &mut Value) {
    let mut ready: HashMap<String, i64> = HashMap::new(); // from which cycle on a register may be read and written
    let mut counters: Vec<Counter> = vec![Counter::default(); 6];
    let mut fresh = true; // behind a jump or at a block's begin anything may be under way
    let (mut now, mut settled, mut turn) = (0i64, 0i64, 0i64); // settled: when everything has arrived
    let mut words: Vec<Word> = Vec::new();
    let insts = block.items_mut()[2].items_mut();
    for inst in insts.iter() {
        let attrs = &inst.items()[ATTRS];
        let opcode = inst.items()[NAME].items()[0].text();
        let jump = attrs.field("hz.pipe").text() == "branch";
        let (reads, writes) = (registers(inst, "hz.reads"), registers(inst, "hz.writes"));
        let mut wait = if fresh || jump { 63 } else { 0 };
        let mut from = if jump { settled } else { now };
        for (regs, late_too) in [(&reads, false), (&writes, true)] {
            for reg in regs {
                from = from.max(*ready.get(reg).unwrap_or(&0));
                for (k, c) in counters.iter().enumerate() {
                    if c.results.contains(reg) || late_too && c.reads.contains(reg) { wait |= 1 << k }
                }
            }
        }
        if let Some(before) = words.last_mut() {
            if from > now {
                before.stall = longer(before.stall, from - now);
                now = from;
            }
        }
        for (k, c) in counters.iter_mut().enumerate() {
            if wait >> k & 1 == 1 { *c = Counter::default() }
        }
        let boards = attrs.field("hz.boards").text();
        let mut named = [7i64, 7]; // for its results, for its late reads; SB0 is LDGDEPBAR's
        for (n, letter) in ["W", "R"].iter().enumerate() {
            if !boards.contains(letter) { continue }
            named[n] = if opcode == "LDGDEPBAR" { 0 } else { turn += 1; 1 + (turn - 1) % 5 };
            let counter = &mut counters[named[n] as usize];
            if n == 0 { counter.results.extend(writes.iter().cloned()) }
            else { counter.reads.extend(registers(inst, "hz.late")) }
        }
        let mut stall = attrs.field("hz.stall").int();
        if stall == 1 && !boards.is_empty() { stall = 2 } // a counter is seen two cycles after it was set
        let done = now + attrs.field("hz.ready").int();
        for reg in reads.iter().chain(&writes) {
            let at = ready.entry(reg.clone()).or_insert(0);
            *at = done.max(*at);
        }
        settled = settled.max(done);
        fresh = jump || attrs.field("hz.signals").int() != 0;
        words.push(Word { stall, results: named[0], reads: named[1], wait });
        now += stall;
    }
    if let Some(last) = words.last_mut() { // the next block knows nothing of this one
        if settled > now { last.stall = longer(last.stall, settled - now) }
    }
    for (inst, w) in insts.iter_mut().zip(words) {
        inst.items_mut()[CTL] = Array([w.stall, 0, w.results, w.reads, w.wait].map(|n| Int(n.into())).to_vec());
    }
}

fn main() {
    let mut input = Reader { data: Vec::new(), at: 0 };
    if std::io::stdin().read_to_end(&mut input.data).is_err() { give_up("standard input can't be read") }
    let mut out: Vec<u8> = Vec::new();
    while input.at < input.data.len() {
        let mut record = input.value();
        let tag = record.items()[0].text().to_string();
        let body = &mut record.items_mut()[1];
        match tag.as_str() {
            "orias" => {
                let level = body.field("level").text().to_string();
                if level != "allocated" { give_up(&format!("reads level 'allocated', not '{level}'")) }
                *body.field_mut("level") = Text("scheduled".to_string());
                let me = ["schedule", "control.rs"].map(|t| Text(t.to_string()));
                body.field_mut("producers").items_mut().push(Array(me.to_vec()));
            }
            "unit" => {
                for function in body.field_mut("functions").items_mut() {
                    for block in function.items_mut()[8].items_mut() { schedule(block) }
                }
            }
            "end" => *body.field_mut("crc") = Int(crc(&out).into()),
            _ => {}
        }
        write(&mut out, &record);
    }
    if std::io::stdout().write_all(&out).is_err() { give_up("standard output can't be written") }
}
