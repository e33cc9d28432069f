import { assert, assertEquals, assertThrows } from "@std/assert";
import { Registry } from "../../lib/observe/registry.ts";
import { lint, readExposition, valueOf } from "../e2e/observe/exposition.ts";

Deno.test("Registry renders counters, amounts, histograms and readings in Prometheus format", () => {
  const registry = new Registry();
  const counter = registry.counter("a_total", { help: "Things.", labels: ["kind"] });
  const plain = registry.counter("b_total", { help: "Others." });
  const amounts = registry.amounts("usd_total", { help: "Money.", labels: ["group"], write: (n) => `${n}.5` });
  const histogram = registry.histogram("c_seconds", { help: "Times.", labels: ["x"], buckets: [0.1, 1] });
  registry.read("d", { help: "Now.", type: "gauge", from: () => [{ labels: { v: "1" }, value: 0.25 }] });
  counter.add(["one"]);
  counter.add(["one"], 2);
  plain.add([]);
  amounts.add(["g"], 12345678901234567890n);
  for (const value of [0.1, 0.5, 7]) histogram.observe(["y"], value);
  const text = registry.render();
  const families = readExposition(text);
  assertEquals(lint(families), []);
  assertEquals(families.get("usd_total")?.samples, [
    { name: "usd_total", labels: { group: "g" }, value: "12345678901234567890.5" },
  ]);
  assertEquals(valueOf(text, "a_total", { kind: "one" }), "3");
  assertEquals(valueOf(text, "b_total"), "1");
  assertEquals(
    families.get("c_seconds")?.samples.map(({ name, labels, value }) => [name.slice(9), labels.le, value]),
    [["_bucket", "0.1", "1"], ["_bucket", "1", "2"], ["_bucket", "+Inf", "3"], ["_sum", undefined, "7.6"], [
      "_count",
      undefined,
      "3",
    ]],
  );
  assertEquals(valueOf(text, "d", { v: "1" }), "0.25");
});

Deno.test("Registry escapes any label value", () => {
  const registry = new Registry();
  const counter = registry.counter("a_total", { help: "Back\\slash\nand line.", labels: ["kind"] });
  const values = ['"', "\\", "\n", 'a"} 1\nb_total{x="', "\\n", "ä\u{1f600}", "", "}"];
  for (const value of values) counter.add([value]);
  const samples = readExposition(registry.render()).get("a_total")?.samples ?? [];
  assertEquals(samples.map(({ labels }) => labels.kind), values);
});

Deno.test("Registry bounds the number of series and loses no count", () => {
  const registry = new Registry(100);
  const one = registry.counter("a_total", { help: "One.", labels: ["x", "y"] });
  const histogram = registry.histogram("b_seconds", { help: "Two.", labels: ["x"], buckets: [1, 2, 3] });
  const three = registry.counter("c_total", { help: "Three.", labels: ["x"] });
  for (let i = 0; i < 500; i++) {
    one.add([String(i), "y"]);
    histogram.observe([String(i)], 1);
    three.add([String(i)]);
  }
  one.add(["other", "other"]);
  const families = readExposition(registry.render());
  assertEquals(lint(families), []);
  const lines = [...families.values()].flatMap(({ samples }) => samples);
  assert(lines.length <= 100 && lines.length > 90, `${lines.length} lines`);
  const sum = (name: string) =>
    lines.filter((line) => line.name === name).reduce((total, { value }) => total + Number(value), 0);
  assertEquals([sum("a_total"), sum("b_seconds_count"), sum("c_total")], [501, 500, 500]);
  assert(lines.some(({ name, labels }) => name === "c_total" && labels.x === "other"));
});

Deno.test("Registry rejects invalid, duplicate and too many names", () => {
  const registry = new Registry(2);
  registry.counter("a_total", { help: "A." });
  assertThrows(() => registry.counter("a_total", { help: "A." }), RangeError, "two metrics");
  assertThrows(() => registry.counter("A-b", { help: "A." }), RangeError, "name a metric");
  assertThrows(() => registry.histogram("h", { help: "H.", buckets: [1] }), RangeError, "too many series");
});

Deno.test("the strict reader finds errors in a text", () => {
  const good = "# HELP a_total A.\n# TYPE a_total counter\na_total 1\n";
  assertEquals(lint(readExposition(good)), []);
  for (
    const bad of [
      good.slice(0, -1),
      "a 1\n",
      good.replace("a_total 1", "a_total  1"),
      good.replace("a_total 1", 'a_total{x="1" 1'),
      good.replace("a_total 1", 'a_total{x="\\q"} 1'),
      good.replace("a_total 1", "b_total 1"),
      good.replace("# HELP a_total A.\n", ""),
      good + good,
    ]
  ) assertThrows(() => readExposition(bad), SyntaxError);
  assertEquals(lint(readExposition(good.replaceAll("a_total", "a_ms"))).length, 2);
});
