import { assertEquals } from "@std/assert";
import type { TokenUsage } from "../../lib/protocols/canonical/types.ts";
import { readTokens } from "../../lib/request/settle_reply.ts";
import type { UsageSource } from "../../lib/store/ledger.ts";
import { tokens } from "../e2e/request/world.ts";

const COUNTED = { prompt: 70, completion: 50, reasoning: 20 };

Deno.test("unreported tokens are counted, and so are reported zeros if the gateway counts some", async () => {
  const reported = { prompt: 7, completion: 5 };
  const { prompt, ...output } = COUNTED;
  const cases: [name: string, usage: TokenUsage, says: string, expected: TokenUsage, source: UsageSource][] = [
    ["all told", reported, "text", reported, "upstream"],
    ["nothing told", {}, "text", COUNTED, "counted"],
    ["all zeros", { prompt: 0, completion: 0 }, "text", COUNTED, "counted"],
    ["zeros of every class", { ...tokens({}) }, "text", COUNTED, "counted"],
    ["an output of zero", { prompt: 7, completion: 0 }, "text", { prompt: 7, ...output }, "counted"],
    ["an input of zero", { prompt: 0, completion: 5 }, "text", { prompt, completion: 5 }, "counted"],
    ["all from a cache", { ...reported, prompt: 0, input_cache_read: 9 }, "text", {
      input_cache_read: 9,
      completion: 5,
    }, "upstream"],
    ["zero of a thought answer", { prompt: 7, completion: 0, reasoning: 3 }, "text", {
      prompt: 7,
      ...output,
    }, "counted"],
    ["an output of zero, of one token", { prompt: 7, completion: 0 }, "a", { prompt: 7, completion: 1 }, "counted"],
    ["an answer of nothing", { prompt: 7, completion: 0 }, "", { prompt: 7 }, "upstream"],
    ["an answer of nothing, and no word of it", { prompt: 7 }, "", { prompt: 7 }, "counted"],
  ];
  for (const [name, usage, says, expected, source] of cases) {
    const charged = await readTokens({ usage, finish: "end" }, {
      prompt: { messages: [] },
      countInput: () => Promise.resolve(COUNTED.prompt),
      countOutput: () => Promise.resolve(says === "text" ? output : { completion: says.length, reasoning: 0 }),
    });
    assertEquals(charged, { tokens: tokens(expected), source }, name);
  }
});

Deno.test("a refusal with zero output tokens is accepted, unless its prompt has zero tokens, too", async () => {
  const { prompt, ...output } = COUNTED;
  const cases: [name: string, usage: TokenUsage, expected: TokenUsage, source: UsageSource][] = [
    ["an output of zero", { prompt: 7, completion: 0 }, { prompt: 7 }, "upstream"],
    ["an output of some tokens", { prompt: 7, completion: 3 }, { prompt: 7, completion: 3 }, "upstream"],
    ["no word of the output", { prompt: 7 }, { prompt: 7, ...output }, "counted"],
    ["all zeros", { prompt: 0, completion: 0 }, { prompt, ...output }, "counted"],
  ];
  for (const [name, usage, expected, source] of cases) {
    const charged = await readTokens({ usage, finish: "refusal" }, {
      prompt: { messages: [] },
      countInput: () => Promise.resolve(prompt),
      countOutput: () => Promise.resolve(output),
    });
    assertEquals(charged, { tokens: tokens(expected), source }, name);
  }
});

Deno.test("an estimated input is marked as estimated, but only if it is billed", async () => {
  const cases: [usage: TokenUsage, source: UsageSource][] = [
    [{ completion: 2 }, "estimated"],
    [{}, "estimated"],
    [{ prompt: 7 }, "counted"],
    [{ prompt: 7, completion: 2 }, "upstream"],
    [{ prompt: 7, completion: 2, counted: "estimated" }, "estimated"],
    [{ prompt: 7, completion: 2, counted: true }, "counted"],
  ];
  for (const [usage, source] of cases) {
    const charged = await readTokens({ usage, finish: "end" }, {
      prompt: {
        messages: [{
          blocks: [{ type: "media", media: { kind: "url", url: "https://acme.test/a.png" } }],
          role: "user",
        }],
      },
      countInput: () => Promise.resolve(7),
      countOutput: () => Promise.resolve({ completion: 2, reasoning: 0 }),
    });
    assertEquals(charged, { tokens: tokens({ prompt: 7, completion: 2 }), source }, JSON.stringify(usage));
  }
});
