/** Chat completions: tools, and what came of them. */
import type { JsonObject } from "../../json/mod.ts";
import { type Checks, must, Skip } from "../check.ts";
import { streaming } from "../common.ts";
import type { Context } from "../context.ts";
import { BOTH, RESULT, WEATHER } from "../words.ts";
import {
  CHAT,
  type ChatCall,
  chatTools,
  checkCalls,
  type Chunk,
  foldChunks,
  readChunks,
  readWhole,
  type Said,
} from "./forms.ts";

const FORCED = { type: "function", function: { name: "get_weather" } };

function ask(context: Context, words: string, more: JsonObject): Promise<Said> {
  const body = CHAT.body(context, words, more);
  return context.once(
    `chat ${JSON.stringify(body)}`,
    async () => readWhole(await context.good({ path: context.path("chat"), body }, "tools")),
  );
}

const forced = (context: Context) => ask(context, WEATHER, { tools: chatTools(), tool_choice: FORCED });
const both = (context: Context) => ask(context, BOTH, { tools: chatTools(), parallel_tool_calls: true });

function flat(calls: readonly ChatCall[]): { id: string; name: string; arguments: string }[] {
  return calls.map(({ id, function: { name, arguments: args } }) => ({ id, name, arguments: args }));
}

/** Sends the model's own message back with a result for each call. */
async function answered(context: Context, said: Said, words: string): Promise<Said> {
  const messages = [
    { role: "user", content: words },
    { ...said.message },
    ...said.calls.map(({ id }) => ({ role: "tool", tool_call_id: id, content: RESULT })),
  ];
  const body = { model: context.subject.model, messages, tools: chatTools() } as JsonObject;
  return readWhole(await context.good({ path: context.path("chat"), body }, "tools"));
}

/** The pieces of one call, in the order they came. */
function piecesByIndex(chunks: readonly Chunk[]) {
  return chunks.flatMap(({ choices }) => choices).flatMap(({ delta }) => delta.tool_calls ?? []);
}

function streamBoth(context: Context): Promise<Chunk[]> {
  return context.once("chat tools stream", async () =>
    readChunks(
      await context.stream({
        path: context.path("chat"),
        body: CHAT.body(context, BOTH, { tools: chatTools(), parallel_tool_calls: true, ...streaming("chat") }),
      }, "tools"),
    ));
}

/** Checks of tools. */
export const CHAT_TOOLS: Checks = {
  async "tools.forced"(context) {
    const { calls } = await forced(context);
    must(calls[0]?.function.name === "get_weather", { expected: "a call of get_weather", seen: calls });
    checkCalls(flat(calls));
  },
  async "tools.finish"(context) {
    const { calls, finish } = await both(context);
    if (calls.length === 0) throw new Skip("the model called nothing");
    must(finish === "tool_calls", { expected: 'finish_reason "tool_calls"', seen: finish });
  },
  async "tools.required"(context) {
    const { calls } = await ask(context, WEATHER, { tools: chatTools(1), tool_choice: "required" });
    must(calls.length > 0, { expected: "a call", seen: calls });
    checkCalls(flat(calls));
  },
  async "tools.none"(context) {
    const { calls, finish } = await ask(context, WEATHER, { tools: chatTools(), tool_choice: "none" });
    must(calls.length === 0, { expected: "no call", seen: calls });
    must(finish !== "tool_calls", { expected: "another finish_reason", seen: finish });
  },
  async "tools.parallel"(context) {
    const { calls } = await both(context);
    if (calls.length < 2) throw new Skip("the model made one call at most");
    checkCalls(flat(calls));
  },
  async "tools.back"(context) {
    const said = await forced(context);
    must(said.calls.length > 0, { expected: "a call to answer", seen: said.message });
    const { text, calls } = await answered(context, said, WEATHER);
    must(text !== "" || calls.length > 0, { expected: "a text or a call", seen: "nothing" });
  },
  async "tools.back_many"(context) {
    const said = await both(context);
    if (said.calls.length < 2) throw new Skip("the model made one call at most");
    await answered(context, said, BOTH);
  },
  async "tools.stream"(context) {
    const pieces = piecesByIndex(await streamBoth(context));
    if (pieces.length === 0) throw new Skip("the model called nothing");
    const order = [...new Set(pieces.map(({ index }) => index))];
    must(order.every((index, at) => index === at), { expected: "indices 0, 1, … in this order", seen: order });
    const calls = order.map((index) => {
      const [first, ...rest] = pieces.filter((piece) => piece.index === index);
      const open = { id: first?.id ?? "", type: first?.type, name: first?.function?.name ?? "" };
      must(open.id !== "" && open.type === "function" && open.name !== "", {
        expected: "id, type and name in a call's first piece",
        seen: first,
      });
      const again = rest.find((piece) => piece.id || piece.function?.name);
      must(again === undefined, { expected: "id and name only in a call's first piece", seen: again });
      const text = [first, ...rest].map((piece) => piece?.function?.arguments ?? "").join("");
      return { id: open.id, name: open.name, arguments: text };
    });
    checkCalls(calls);
  },
  async "tools.stream_finish"(context) {
    const chunks = await streamBoth(context);
    if (piecesByIndex(chunks).length === 0) throw new Skip("the model called nothing");
    const { finish } = foldChunks(chunks);
    must(finish.length === 1 && finish[0] === "tool_calls", {
      expected: 'one finish_reason "tool_calls"',
      seen: finish,
    });
  },
};
