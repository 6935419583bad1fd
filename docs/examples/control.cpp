// A scheduler in C++: the order stays, every instruction gets a control word, by the facts that
// `orias-facts --annotate` adds. Nothing but the standard library; reads standard input, writes standard output.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

// ---------------------------------------------------------------- msgpack: values without floats and booleans
struct Value {
    enum Kind { NIL, INT, TEXT, BYTES, ARRAY, MAP } kind = NIL;
    int64_t number = 0;
    bool huge = false;  // an unsigned number beyond int64_t
    std::string text;
    std::vector<Value> items;              // of an array
    std::map<std::string, Value> fields;   // of a map: written with sorted keys
};

static Value integer(int64_t n) { Value v; v.kind = Value::INT; v.number = n; return v; }

static std::string data;
static size_t at = 0;

static uint64_t big_endian(int bytes) {
    if (at + bytes > data.size()) { std::fputs("control: the stream ends early\n", stderr); std::exit(1); }
    uint64_t n = 0;
    while (bytes--) n = n << 8 | static_cast<unsigned char>(data[at++]);
    return n;
}

static std::string chars(size_t count) {
    if (at + count > data.size()) big_endian(9);
    at += count;
    return data.substr(at - count, count);
}

static Value read();

static Value list(size_t count) {
    Value v; v.kind = Value::ARRAY;
    while (count--) v.items.push_back(read());
    return v;
}

static Value table(size_t count) {
    Value v; v.kind = Value::MAP;
    while (count--) { std::string key = read().text; v.fields[key] = read(); }
    return v;
}

static Value read() {
    unsigned tag = static_cast<unsigned>(big_endian(1));
    Value v;
    if (tag < 0x80) return integer(tag);
    if (tag >= 0xe0) return integer(static_cast<int8_t>(tag));
    if (tag < 0x90) return table(tag & 15);
    if (tag < 0xa0) return list(tag & 15);
    if (tag < 0xc0) { v.kind = Value::TEXT; v.text = chars(tag & 31); return v; }
    switch (tag) {
        case 0xc0: return v;
        case 0xc4: case 0xc5: case 0xc6: v.kind = Value::BYTES; v.text = chars(big_endian(1 << (tag - 0xc4))); return v;
        case 0xcc: case 0xcd: case 0xce: return integer(static_cast<int64_t>(big_endian(1 << (tag - 0xcc))));
        case 0xcf: v = integer(static_cast<int64_t>(big_endian(8))); v.huge = v.number < 0; return v;
        case 0xd0: return integer(static_cast<int8_t>(big_endian(1)));
        case 0xd1: return integer(static_cast<int16_t>(big_endian(2)));
        case 0xd2: return integer(static_cast<int32_t>(big_endian(4)));
        case 0xd3: return integer(static_cast<int64_t>(big_endian(8)));
        case 0xd9: case 0xda: case 0xdb: v.kind = Value::TEXT; v.text = chars(big_endian(1 << (tag - 0xd9))); return v;
        case 0xdc: return list(big_endian(2));
        case 0xdd: return list(big_endian(4));
        case 0xde: return table(big_endian(2));
        case 0xdf: return table(big_endian(4));
    }
    std::fprintf(stderr, "control: a byte that no stream has: %u\n", tag);
    std::exit(1);
}

static void put(std::string& out, unsigned tag, uint64_t n, int bytes) {
    out += static_cast<char>(tag);
    while (bytes--) out += static_cast<char>(n >> 8 * bytes);
}

// A length: in the tag below `small`, else behind one of three tags (the first is 0 where there are two).
static void length(std::string& out, size_t n, unsigned fix, size_t small, unsigned tag8, unsigned tag16) {
    if (n < small) put(out, fix | static_cast<unsigned>(n), 0, 0);
    else if (tag8 && n < 256) put(out, tag8, n, 1);
    else if (n < 65536) put(out, tag16, n, 2);
    else put(out, tag16 + 1, n, 4);
}

static void write(std::string& out, const Value& v) {
    int64_t n = v.number;
    switch (v.kind) {
        case Value::NIL: put(out, 0xc0, 0, 0); break;
        case Value::INT:
            if (v.huge) put(out, 0xcf, n, 8);
            else if (n >= 0) {
                if (n < 128) put(out, static_cast<unsigned>(n), 0, 0);
                else if (n < 256) put(out, 0xcc, n, 1);
                else if (n < 65536) put(out, 0xcd, n, 2);
                else if (n < (int64_t{1} << 32)) put(out, 0xce, n, 4);
                else put(out, 0xcf, n, 8);
            } else if (n >= -32) put(out, static_cast<unsigned>(n & 0xff), 0, 0);
            else if (n >= -128) put(out, 0xd0, n, 1);
            else if (n >= -32768) put(out, 0xd1, n, 2);
            else if (n >= -(int64_t{1} << 31)) put(out, 0xd2, n, 4);
            else put(out, 0xd3, n, 8);
            break;
        case Value::TEXT: length(out, v.text.size(), 0xa0, 32, 0xd9, 0xda); out += v.text; break;
        case Value::BYTES: length(out, v.text.size(), 0, 0, 0xc4, 0xc5); out += v.text; break;
        case Value::ARRAY:
            length(out, v.items.size(), 0x90, 16, 0, 0xdc);
            for (const Value& item : v.items) write(out, item);
            break;
        case Value::MAP:
            length(out, v.fields.size(), 0x80, 16, 0, 0xde);
            for (const auto& [key, value] : v.fields) {
                length(out, key.size(), 0xa0, 32, 0xd9, 0xda);
                out += key;
                write(out, value);
            }
    }
}

static uint32_t crc(const std::string& bytes) {
    uint32_t c = ~0u;
    for (unsigned char b : bytes) {
        c ^= b;
        for (int k = 0; k < 8; k++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}

// ---------------------------------------------------------------- the scheduler
// An instruction is [[opcode, modifier...], dsts, srcs, guard, line, loc, ctl, uses, defs, attrs].
enum { NAME = 0, CTL = 6, ATTRS = 9 };

static void schedule(Value& block) {
    std::map<std::string, int> ready;             // register -> cycle from which on it may be read and written
    std::set<std::string> results[6], reads[6];   // counter -> registers that it tells of
    bool fresh = true;                            // behind a jump or at a block's begin anything may be under way
    int now = 0, settled = 0, turn = 0;           // settled: the cycle at which everything has arrived
    Value* before = nullptr;                      // control word of the instruction before
    for (Value& inst : block.items[2].items) {
        auto& attrs = inst.items[ATTRS].fields;
        const std::string opcode = inst.items[NAME].items[0].text;
        const bool jump = attrs["hz.pipe"].text == "branch";
        int wait = fresh ? 63 : 0, from = jump ? settled : now;
        if (jump) wait = 63;
        for (const Value& r : attrs["hz.reads"].items) {
            const std::string& reg = r.items[0].text;
            from = std::max(from, ready[reg]);
            for (int k = 0; k < 6; k++) if (results[k].count(reg)) wait |= 1 << k;
        }
        for (const Value& w : attrs["hz.writes"].items) {
            const std::string& reg = w.items[0].text;
            from = std::max(from, ready[reg]);
            for (int k = 0; k < 6; k++) if (results[k].count(reg) || reads[k].count(reg)) wait |= 1 << k;
        }
        if (before && from > now) {  // the distance goes into the stall of the instruction before; 0 drains the pipe
            int64_t& stall = before->items[0].number;
            if (stall) stall = stall + from - now <= 15 ? stall + from - now : 0;
            now = from;
        }
        for (int k = 0; k < 6; k++) if (wait >> k & 1) { results[k].clear(); reads[k].clear(); }
        int counters[2] = {7, 7};  // for its results, for its late reads; SB0 is LDGDEPBAR's
        const std::string boards = attrs["hz.boards"].text;
        for (int n = 0; n < 2; n++) {
            if (boards.find("WR"[n]) == std::string::npos) continue;
            int k = counters[n] = opcode == "LDGDEPBAR" ? 0 : 1 + turn++ % 5;
            if (n) for (const Value& r : attrs["hz.late"].items) reads[k].insert(r.text);
            else for (const Value& w : attrs["hz.writes"].items) results[k].insert(w.items[0].text);
        }
        int64_t stall = attrs["hz.stall"].number;
        if (stall == 1 && !boards.empty()) stall = 2;  // a counter is seen two cycles after it was set
        const int done = now + static_cast<int>(attrs["hz.ready"].number);
        for (const char* side : {"hz.reads", "hz.writes"})
            for (const Value& r : attrs[side].items) ready[r.items[0].text] = std::max(ready[r.items[0].text], done);
        settled = std::max(settled, done);
        fresh = jump || attrs["hz.signals"].number;
        Value word; word.kind = Value::ARRAY;
        for (int64_t n : {stall, int64_t{0}, int64_t{counters[0]}, int64_t{counters[1]}, int64_t{wait}})
            word.items.push_back(integer(n));
        inst.items[CTL] = word;
        before = &inst.items[CTL];
        now += static_cast<int>(stall);
    }
    if (before && before->items[0].number && settled > now) {  // the next block knows nothing of this one
        int64_t& stall = before->items[0].number;
        stall = stall + settled - now <= 15 ? stall + settled - now : 0;
    }
}

int main() {
    char buffer[1 << 16];
    for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, stdin)) > 0;) data.append(buffer, n);
    std::string out;
    while (at < data.size()) {
        Value record = read();
        const std::string tag = record.items[0].text;
        Value& body = record.items[1];
        if (tag == "orias") {
            if (body.fields["level"].text != "allocated") {
                std::fprintf(stderr, "control: reads level 'allocated', not '%s'\n", body.fields["level"].text.c_str());
                return 1;
            }
            body.fields["level"].text = "scheduled";
            Value me; me.kind = Value::ARRAY; me.items.resize(2);
            me.items[0].kind = me.items[1].kind = Value::TEXT;
            me.items[0].text = "schedule"; me.items[1].text = "control.cpp";
            body.fields["producers"].items.push_back(me);
        } else if (tag == "unit") {
            for (Value& function : body.fields["functions"].items)
                for (Value& block : function.items[8].items) schedule(block);
        } else if (tag == "end") {
            body.fields["crc"] = integer(crc(out));
        }
        write(out, record);
    }
    std::fwrite(out.data(), 1, out.size(), stdout);
}
