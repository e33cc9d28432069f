/** Messages: tools, and what came of them. */
import type { Json, JsonObject } from "../../json/mod.ts";
import { checkCalls } from "../chat/forms.ts";
import { type Checks, must, Skip } from "../check.ts";
import { streaming } from "../common.ts";
import type { Context } from "../context.ts";
import { BOTH, RESULT, WEATHER } from "../words.ts";
import { type Event, foldEvents, MESSAGES, messagesTools, readEvents, readWhole, type Said } from "./forms.ts";
import { checkBlocks } from "./streams.ts";

function ask(context: Context, words: string, more: JsonObject): Promise<Said> {
  const body = MESSAGES.body(context, words, more);
  return context.once(
    `messages ${JSON.stringify(body)}`,
    async () => readWhole(await context.good({ path: context.path("messages"), body }, "tools")),
  );
}

const forced = (context: Context) =>
  ask(context, WEATHER, { tools: messagesTools(), tool_choice: { type: "tool", name: "get_weather" } });
const both = (context: Context) => ask(context, BOTH, { tools: messagesTools(), tool_choice: { type: "auto" } });

function flat(calls: Said["calls"]): { id: string; name: string; arguments: string }[] {
  return calls.map(({ id, name, input }) => ({ id, name, arguments: JSON.stringify(input) }));
}

/** Sends the model's own blocks back with a result for each call. */
async function answered(context: Context, said: Said, { words, more = {} }: { words: string; more?: JsonObject }) {
  const results = said.calls.map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: RESULT, ...more }));
  const messages = [
    { role: "user", content: words },
    { role: "assistant", content: said.body.content ?? [] },
    { role: "user", content: results as Json },
  ];
  const body = { ...MESSAGES.body(context, words, { tools: messagesTools() }), messages };
  return readWhole(await context.good({ path: context.path("messages"), body }, "tools"));
}

function streamBoth(context: Context): Promise<Event[]> {
  return context.once("messages tools stream", async () =>
    readEvents(
      await context.stream({
        path: context.path("messages"),
        body: MESSAGES.body(context, BOTH, { tools: messagesTools(), ...streaming("messages") }),
      }, "tools"),
    ));
}

/** Checks of tools. */
export const MESSAGES_TOOLS: Checks = {
  async "tools.forced"(context) {
    const { calls } = await forced(context);
    must(calls[0]?.name === "get_weather", { expected: "a call of get_weather", seen: calls });
    checkCalls(flat(calls));
  },
  async "tools.stop"(context) {
    const { calls, stop } = await forced(context);
    must(calls.length > 0 && stop === "tool_use", { expected: 'stop_reason "tool_use"', seen: stop });
  },
  async "tools.any"(context) {
    const { calls } = await ask(context, WEATHER, { tools: messagesTools(1), tool_choice: { type: "any" } });
    must(calls.length > 0, { expected: "a call", seen: calls });
    checkCalls(flat(calls));
  },
  async "tools.none"(context) {
    const { calls, stop } = await ask(context, WEATHER, { tools: messagesTools(), tool_choice: { type: "none" } });
    must(calls.length === 0, { expected: "no call", seen: calls });
    must(stop !== "tool_use", { expected: "another stop_reason", seen: stop });
  },
  async "tools.parallel"(context) {
    const { calls } = await both(context);
    if (calls.length < 2) throw new Skip("the model made one call at most");
    checkCalls(flat(calls));
  },
  async "tools.single"(context) {
    const tool_choice = { type: "any", disable_parallel_tool_use: true };
    const body = MESSAGES.body(context, BOTH, { tools: messagesTools(), tool_choice });
    const answer = await context.good({ path: context.path("messages"), body }, "tools");
    const { calls } = readWhole(answer);
    // Gemini has no such flag: who says so has done what can be done.
    if (/parallel/.test(answer.header("x-sluice-dropped") ?? "")) {
      throw new Skip("the gateway says that it was dropped");
    }
    must(calls.length === 1, { expected: "one call", seen: calls });
  },
  async "tools.back"(context) {
    const said = await forced(context);
    must(said.calls.length > 0, { expected: "a call to answer", seen: said.content });
    await answered(context, said, { words: WEATHER });
  },
  async "tools.failed"(context) {
    const said = await forced(context);
    must(said.calls.length > 0, { expected: "a call to answer", seen: said.content });
    await answered(context, said, { words: WEATHER, more: { is_error: true } });
  },
  async "tools.back_many"(context) {
    const said = await both(context);
    if (said.calls.length < 2) throw new Skip("the model made one call at most");
    await answered(context, said, { words: BOTH });
  },
  async "tools.stream"(context) {
    const events = await streamBoth(context);
    checkBlocks(events);
    const starts = events.filter(({ content_block }) => Object(content_block).type === "tool_use");
    if (starts.length === 0) throw new Skip("the model called nothing");
    for (const { content_block } of starts) {
      const { input, id, name } = Object(content_block);
      must(JSON.stringify(input) === "{}" && typeof id === "string" && typeof name === "string", {
        expected: "id, name and an empty input",
        seen: content_block,
      });
    }
    const { calls, stop } = foldEvents(events);
    checkCalls(flat(calls));
    must(stop === "tool_use", { expected: 'stop_reason "tool_use"', seen: stop });
  },
};
