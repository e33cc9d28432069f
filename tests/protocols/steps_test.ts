import { assertEquals, assertLess } from "@std/assert";
import type { ContentBlock, Prompt } from "../../lib/protocols/canonical/types.ts";
import type { JsonObject } from "../../lib/json/mod.ts";
import { structuredOutputSchema } from "../../lib/protocols/canonical/structured_schema.ts";
import { readSteps as readChat } from "../../lib/protocols/chat/read_prompt.ts";
import { readSteps as readGemini } from "../../lib/protocols/gemini/read_prompt.ts";
import { adaptPrompt } from "../../lib/protocols/translate/adapt_prompt.ts";
import { UPSTREAM_CODECS } from "../../lib/upstreams/protocols.ts";
import { runToEnd } from "../../lib/scheduler.ts";
import { assistant, call, promptOf, result, user } from "./canonical/messages.ts";
import { adapt, targetOf } from "./translate/targets.ts";

const PROTOCOLS = ["chat", "responses", "messages", "gemini"] as const;
const CALLS = 2_100;

/** Runs work to its end. Returns how many steps it took. */
function stepsOf<T>(work: Generator<void, T>): number {
  let steps = 1;
  while (work.next().done !== true) steps++;
  return steps;
}

/** A conversation with many calls and their results. */
function manyCalls(nameOf: (index: number) => string, perMessage = CALLS): Prompt {
  const messages = [user("x")];
  for (let from = 0; from < CALLS; from += perMessage) {
    const indexes = Array.from({ length: perMessage }, (_, at) => from + at);
    messages.push(
      assistant(...indexes.map((index) => call(`c${index}`, nameOf(index)))),
      user(...indexes.map((index) => result(`c${index}`, "y"))),
    );
  }
  return promptOf(messages, { protocol: "chat" });
}

Deno.test("calls are renamed in steps, whether they are in one message or in many", () => {
  for (const protocol of PROTOCOLS) {
    for (const perMessage of [1, CALLS]) {
      const steps = stepsOf(adaptPrompt(manyCalls((index) => `f!${index}`, perMessage), targetOf(protocol)));
      assertLess(CALLS / 512, steps, `${protocol}, ${perMessage} in a message`);
    }
  }
});

Deno.test("prompts are written in steps, whether their blocks are in one message or in many", () => {
  for (const protocol of PROTOCOLS) {
    for (const perMessage of [1, CALLS]) {
      // Chat and messages write a message in one step: even 60,000 blocks take less than 10 ms.
      if (perMessage === CALLS && (protocol === "chat" || protocol === "messages")) continue;
      const target = targetOf(protocol);
      const { prompt } = adapt(manyCalls(() => "f", perMessage), target);
      const steps = stepsOf(UPSTREAM_CODECS[protocol].writePrompt(prompt, target));
      assertLess(CALLS / 2_048, steps, `${protocol}, ${perMessage} in a message`);
    }
  }
});

Deno.test("a large schema of the answer is rewritten in steps", () => {
  const properties = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`m${at}`, { type: "string" }]));
  assertLess(1_000, stepsOf(structuredOutputSchema({ type: "object", properties })));
  assertLess(20, stepsOf(structuredOutputSchema({ type: "string", default: "x".repeat(1_000_000) })));
});

Deno.test("Gemini's signatures of texts find their text without a search for each", () => {
  const target = targetOf("gemini");
  const count = 1_000;
  let looks = 0;
  const signature = { issuer: target.issuer, value: "s", id: "text" };
  const blocks = Array.from({ length: count }, (): ContentBlock[] => {
    const value: JsonObject = {};
    Object.defineProperty(value, "text", { get: () => void looks++, enumerable: false });
    return [{ type: "reasoning", text: "", hidden: true, signature }, {
      type: "vendor_specific",
      from: "gemini",
      value,
    }];
  }).flat();
  runToEnd(UPSTREAM_CODECS.gemini.writePrompt(promptOf([user("x"), assistant(...blocks)]), target));
  assertLess(looks, 10 * count);
});

Deno.test("Gemini's signatures go to the nearest free text on their side, else on the other", () => {
  const target = targetOf("gemini");
  const signed = (value: string, id: string): ContentBlock => ({
    type: "reasoning",
    text: "",
    hidden: true,
    signature: { issuer: target.issuer, value, id },
  });
  const cases: [string, ContentBlock[], (string | undefined)[]][] = [
    ["behind", [signed("1", "text"), { type: "text", text: "a" }, { type: "text", text: "b" }], ["1", undefined]],
    ["before", [{ type: "text", text: "a" }, { type: "text", text: "b" }, signed("1", "text:end")], [undefined, "1"]],
    ["the other side", [{ type: "text", text: "a" }, signed("1", "text")], ["1"]],
    ["two for two", [signed("1", "text"), signed("2", "text"), { type: "text", text: "a" }, {
      type: "text",
      text: "b",
    }], [
      "1",
      "2",
    ]],
    ["one too many", [signed("1", "text"), signed("2", "text"), { type: "text", text: "a" }], ["1"]],
    ["back past signed ones", [
      { type: "text", text: "a" },
      { type: "text", text: "b" },
      signed("1", "text:end"),
      signed("2", "text:end"),
    ], ["2", "1"]],
  ];
  for (const [claim, blocks, expected] of cases) {
    const body = runToEnd(UPSTREAM_CODECS.gemini.writePrompt(promptOf([user("x"), assistant(...blocks)]), target));
    const parts = (body.contents as JsonObject[])[1]?.parts as JsonObject[];
    assertEquals(parts.map(({ thoughtSignature }) => thoughtSignature), expected, claim);
  }
});

Deno.test("long bodies are read in steps", () => {
  const messages = Array.from({ length: 4_000 }, () => ({ role: "user", content: "x" }));
  assertLess(20, stepsOf(readChat({ model: "m", messages })));
  const parts = Array.from({ length: 1_000 }, () => ({ text: "x", thoughtSignature: "c2ln" }));
  for (const roles of [["model", "model"], ["model", "user"]]) {
    const contents = [0, 1, 2, 3].map((at) => ({ role: roles[at % 2], parts }));
    assertLess(roles[1] === "model" ? 10 : 5, stepsOf(readGemini({ model: "m", contents } as JsonObject)));
  }
});
