/** Responses: tools, and what came of them. */
import type { JsonObject } from "../../json/mod.ts";
import { checkCalls } from "../chat/forms.ts";
import { type Checks, must, Skip } from "../check.ts";
import { streaming } from "../common.ts";
import type { Context } from "../context.ts";
import { BOTH, RESULT, WEATHER } from "../words.ts";
import { type Event, lastResponse, readEvents, readWhole, RESPONSES, responsesTools, type Said } from "./forms.ts";

const FORCED = { type: "function", name: "get_weather" };

function ask(context: Context, words: string, more: JsonObject): Promise<Said> {
  const body = RESPONSES.body(context, words, more);
  return context.once(
    `responses ${JSON.stringify(body)}`,
    async () => readWhole(await context.good({ path: context.path("responses"), body }, "tools")),
  );
}

const forced = (context: Context) => ask(context, WEATHER, { tools: responsesTools(), tool_choice: FORCED });
const both = (context: Context) => ask(context, BOTH, { tools: responsesTools(), parallel_tool_calls: true });

function flat(calls: Said["calls"]): { id: string; name: string; arguments: string }[] {
  return calls.map(({ call_id, name, arguments: args }) => ({ id: call_id, name, arguments: args }));
}

/** Sends the model's own items back with an output for each call. */
async function answered(context: Context, said: Said, words: string): Promise<Said> {
  const output = Array.isArray(said.body.output) ? said.body.output : [];
  const input = [
    { role: "user", content: words },
    ...output,
    ...said.calls.map(({ call_id }) => ({ type: "function_call_output", call_id, output: RESULT })),
  ];
  const body = { model: context.subject.model, input, tools: responsesTools(), store: false };
  return readWhole(await context.good({ path: context.path("responses"), body }, "tools"));
}

function streamBoth(context: Context): Promise<Event[]> {
  return context.once("responses tools stream", async () =>
    readEvents(
      await context.stream({
        path: context.path("responses"),
        body: RESPONSES.body(context, BOTH, {
          tools: responsesTools(),
          parallel_tool_calls: true,
          ...streaming("responses"),
        }),
      }, "tools"),
    ));
}

/** Checks of tools. */
export const RESPONSES_TOOLS: Checks = {
  async "tools.forced"(context) {
    const { calls } = await forced(context);
    must(calls[0]?.name === "get_weather", { expected: "a call of get_weather", seen: calls });
    checkCalls(flat(calls));
  },
  async "tools.echo"(context) {
    const { tools } = (await forced(context)).body;
    for (const tool of Array.isArray(tools) ? tools : [undefined]) {
      const missing = ["type", "name", "description", "parameters", "strict"].filter((name) => !(name in Object(tool)));
      must(missing.length === 0, { expected: `tools with ${missing.join(", ")}`, seen: tool });
    }
  },
  async "tools.required"(context) {
    const { calls } = await ask(context, WEATHER, { tools: responsesTools(1), tool_choice: "required" });
    must(calls.length > 0, { expected: "a call", seen: calls });
    checkCalls(flat(calls));
  },
  async "tools.none"(context) {
    const { calls } = await ask(context, WEATHER, { tools: responsesTools(), tool_choice: "none" });
    must(calls.length === 0, { expected: "no call", seen: calls });
  },
  async "tools.parallel"(context) {
    const { calls } = await both(context);
    if (calls.length < 2) throw new Skip("the model made one call at most");
    checkCalls(flat(calls));
  },
  async "tools.back"(context) {
    const said = await forced(context);
    must(said.calls.length > 0, { expected: "a call to answer", seen: said.output });
    const { output } = await answered(context, said, WEATHER);
    must(output.length > 0, { expected: "a message or a call", seen: output });
  },
  async "tools.back_many"(context) {
    const said = await both(context);
    if (said.calls.length < 2) throw new Skip("the model made one call at most");
    await answered(context, said, BOTH);
  },
  async "tools.stream"(context) {
    const events = await streamBoth(context);
    const open = new Map<unknown, string>();
    let calls = 0;
    for (const { type, output_index, item, delta, arguments: whole } of events) {
      const soFar = open.get(output_index);
      if (type === "response.output_item.added" && Object(item).type === "function_call") {
        calls++;
        const { call_id, name } = Object(item);
        must(typeof call_id === "string" && typeof name === "string", { expected: "call_id and name", seen: item });
        open.set(output_index, String(Object(item).arguments ?? ""));
      } else if (type === "response.function_call_arguments.delta") {
        must(soFar !== undefined, { expected: "the item before its arguments", seen: type });
        open.set(output_index, soFar + String(delta));
      } else if (type === "response.function_call_arguments.done") {
        must(soFar === whole, { expected: `the arguments ${soFar}`, seen: whole });
      } else if (type === "response.output_item.done" && Object(item).type === "function_call") {
        must(Object(item).arguments === soFar, { expected: `the arguments ${soFar}`, seen: item });
        open.delete(output_index);
      }
    }
    if (calls === 0) throw new Skip("the model called nothing");
    must(open.size === 0, { expected: "response.output_item.done of each call", seen: `${open.size} open` });
    checkCalls(flat(lastResponse(events).calls));
  },
};
