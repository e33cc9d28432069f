/** A request in the upstream's own protocol is relayed without decoding its prompt: V8 reports which functions ran. */
import { Session } from "node:inspector";
import { assertEquals } from "@std/assert";
import type { JsonObject } from "../../../lib/json/mod.ts";
import { model, startGateway, upstream, VENDORS } from "../../support/gateway.ts";
import { startUpstream } from "../../upstream/mod.ts";
import { answer, PRICING } from "./budgeted.ts";

const SCHEMA = { type: "object", properties: { path: { type: "string" } }, required: ["path"] };

/** Gemini's requests are decoded: their members may be spelled in two ways. */
const RELAYED = ["chat", "responses", "messages"] as const;

/** A turn of a coding agent: tools, a call and its result. It asks for reasoning, which the model does not support. */
const TURNS: Readonly<Record<typeof RELAYED[number], JsonObject>> = {
  chat: {
    messages: [
      { role: "system", content: "Be brief" },
      { role: "user", content: [{ type: "text", text: "Read it" }] },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: '{"path":"a"}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: "line" },
    ],
    tools: [{ type: "function", function: { name: "read", parameters: SCHEMA } }],
    reasoning_effort: "high",
  },
  responses: {
    instructions: "Be brief",
    input: [
      { type: "message", role: "user", content: [{ type: "input_text", text: "Read it" }] },
      { type: "reasoning", id: "rs_1", summary: [], encrypted_content: "gAAA" },
      { type: "function_call", call_id: "c1", name: "read", arguments: '{"path":"a"}' },
      { type: "function_call_output", call_id: "c1", output: "line" },
    ],
    tools: [{ type: "function", name: "read", parameters: SCHEMA }],
    include: ["reasoning.encrypted_content"],
  },
  messages: {
    system: [{ type: "text", text: "Be brief", cache_control: { type: "ephemeral" } }],
    messages: [
      { role: "user", content: "Read it" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm", signature: "EqQB" },
          { type: "tool_use", id: "c1", name: "read", input: { path: "a" } },
        ],
      },
      { role: "user", content: [{ type: "tool_result", tool_use_id: "c1", content: "line" }] },
    ],
    tools: [{ name: "read", input_schema: SCHEMA }],
    thinking: { type: "enabled", budget_tokens: 1024 },
    max_tokens: 2000,
  },
};

/** The files that read conversations. */
const READERS: Readonly<Record<typeof RELAYED[number], string>> = {
  chat: "/lib/protocols/chat/read_messages.ts",
  responses: "/lib/protocols/responses/read_input.ts",
  messages: "/lib/protocols/messages/read_content.ts",
};

/** Returns the functions that have run since the last call. Starting and stopping the coverage takes half a second. */
async function watchFunctions(): Promise<{ take(): Promise<ScriptCoverage[]> } & Disposable> {
  const session = new Session();
  session.connect();
  const post = (method: string, params: object = {}) =>
    new Promise<{ result: ScriptCoverage[] }>((resolve, reject) =>
      session.post(
        method,
        params,
        (error, answer) => error ? reject(error) : resolve(answer as typeof answer & { result: ScriptCoverage[] }),
      )
    );
  await post("Profiler.enable");
  await post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  return {
    take: async () => (await post("Profiler.takePreciseCoverage")).result,
    [Symbol.dispose]: () => session.disconnect(),
  };
}

interface ScriptCoverage {
  url: string;
  functions: { functionName: string; ranges: { count: number }[] }[];
}

Deno.test("requests are relayed without decoding their prompts, with limits and budgets", async () => {
  using functions = await watchFunctions();
  for (const protocol of RELAYED) {
    await using one = startUpstream(answer(protocol));
    const other = protocol === "messages" ? "chat" : "messages";
    await using two = startUpstream(answer(other));
    await using gateway = startGateway({
      upstreams: {
        one: upstream(VENDORS[protocol], one.url, { protocols: [protocol] }),
        two: upstream(VENDORS[other], two.url, { protocols: [other] }),
      },
      // The budget pays for less than the model can write, so that the gateway sets a limit.
      models: [
        model("acme/same", [{ upstream: "one", model: "m" }], { pricing: PRICING }),
        model("acme/other", [{ upstream: "two", model: "m" }], { pricing: PRICING }),
      ],
      groups: {
        default: { limits: { tokens_per_minute: 1_000_000 }, budget: { usd: "0.05", period: "total" } },
      },
    });
    /** Returns whether the request was decoded. */
    const ask = async (model: string) => {
      await functions.take();
      const response = await gateway.ask(protocol, { model, ...TURNS[protocol] });
      assertEquals(response.status, 200, await response.text());
      return (await functions.take()).some(({ url, functions }) =>
        url.endsWith(READERS[protocol]) && functions.some(({ ranges }) => ranges.some(({ count }) => count > 0))
      );
    };
    assertEquals([protocol, await ask("acme/same"), await ask("acme/other")], [protocol, false, true]);
  }
});
