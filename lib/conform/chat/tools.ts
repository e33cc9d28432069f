/** Chat completions: streamed tool calls and finish reasons. */
import { type Checks, must, Skip } from "../check.ts";
import { streaming } from "../http_checks.ts";
import type { SuiteContext } from "../suite_context.ts";
import { checkCalls, parallelCalls } from "../shared_checks.ts";
import { BOTH } from "../prompts.ts";
import { CHAT, type ChatChunk, chatTools, foldChunks, readChunks } from "./forms.ts";

/** The pieces of each call, in order. */
function piecesByIndex(chunks: readonly ChatChunk[]) {
  return chunks.flatMap(({ choices }) => choices).flatMap(({ delta }) => delta.tool_calls ?? []);
}

function streamBoth(context: SuiteContext): Promise<ChatChunk[]> {
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
  async "tools.finish"(context) {
    const { calls, finish } = await parallelCalls(CHAT, context);
    if (calls.length === 0) throw new Skip("the model called nothing");
    must(finish === "tool_calls", { expected: 'finish_reason "tool_calls"', seen: finish });
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
