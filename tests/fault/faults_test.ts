import { assert, assertEquals } from "@std/assert";
import { faultOfModel, FAULTS, findFault, readFault, type RequestedFault } from "../../lib/fault/faults.ts";

Deno.test("findFault() finds faults among words", () => {
  const cases: [word: string, fault: RequestedFault][] = [
    ["status:429", { name: "status", status: 429 }],
    ["stall", { name: "stall" }],
    ["stall:30s", { name: "stall", ms: 30_000 }],
    ["stall-after:5:30s", { name: "stall", after: 5, ms: 30_000 }],
    ["stall-after:0", { name: "stall", after: 0 }],
    ["slow", { name: "slow", ms: 200 }],
    ["slow:2m", { name: "slow", ms: 120_000 }],
    ["cut", { name: "cut" }],
    ["cut-after:5", { name: "cut", after: 5 }],
    ["half-event-after:2", { name: "half-event", after: 2 }],
    ["no-usage", { name: "no-usage" }],
    ["long-line:2mb", { name: "long-line", bytes: 2_097_152 }],
    ["long-line", { name: "long-line", bytes: 2_097_152 }],
    ["gzip-bomb:1gb", { name: "gzip-bomb", bytes: 1_073_741_824 }],
  ];
  for (const [word, fault] of cases) assertEquals(readFault(word, "wire"), fault, word);
});

Deno.test("findFault() rejects near misses", () => {
  const words = [
    ..."Status:429 status status: status:999 status:42 status:429:5 stall: stall:30 stall:-5s stall:5h cut:5 cut-after"
      .split(" "),
    ..."cut-after:x cut-after: slow-after:5 after:5 no no-usage:1 toString constructor:5 long-line:2 endless:5".split(
      " ",
    ),
    "",
  ];
  for (const word of words) assertEquals(readFault(word, "wire"), undefined, word);
});

Deno.test("every fault can be requested by its example, and wire faults not inside the gateway", () => {
  for (const [name, kind] of Object.entries(FAULTS)) {
    assertEquals(readFault(kind.example, "wire")?.name, name);
    assertEquals(readFault(kind.example, "embedded")?.name, "wire" in kind ? undefined : name);
  }
});

Deno.test("a fault may be anywhere in the user message, between white space", () => {
  assertEquals(findFault("Please fail: status:503, thank you", "wire"), { name: "status", status: 503 });
  assertEquals(findFault('say "cut-after:2"\nand status:500', "wire"), { name: "cut", after: 2 });
  assertEquals(findFault("retry-after:3 status:429", "wire"), { name: "status", status: 429, retryAfter: 3 });
  assertEquals(findFault("What a shortcut that was", "wire"), undefined);
  assertEquals(findFault("", "wire"), undefined);
});

Deno.test("faultOfModel() reads a fault from a model id", () => {
  const cases: [model: string, fault: RequestedFault | undefined][] = [
    ["fault-status-429", { name: "status", status: 429 }],
    ["acme/fault-stall-after-5-30s", { name: "stall", after: 5, ms: 30_000 }],
    ["fault-stall-30s", { name: "stall", ms: 30_000 }],
    ["fault-no-usage", { name: "no-usage" }],
    ["fault-half-event-after-2", { name: "half-event", after: 2 }],
    ["fault-cut", { name: "cut" }],
    ["fault-nothing", undefined],
    ["fault-", undefined],
    ["fault", undefined],
    ["default-cut", undefined],
  ];
  for (const [model, fault] of cases) assertEquals(faultOfModel(model, "wire"), fault, model);
  assert(faultOfModel("fault-reset", "embedded") === undefined);
});
