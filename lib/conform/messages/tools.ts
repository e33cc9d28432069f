/** Messages: streamed tool calls, single calls, and failed results. */
import { type Checks, must, Skip } from "../check.ts";
import { streaming } from "../http_checks.ts";
import type { SuiteContext } from "../suite_context.ts";
import { checkCalls, forcedCall, goOn } from "../shared_checks.ts";
import { BOTH, WEATHER } from "../prompts.ts";
import { foldEvents, type MessageEvent, MESSAGES, messagesTools, readEvents, readWhole } from "./forms.ts";
import { checkBlocks } from "./streams.ts";

function streamBoth(context: SuiteContext): Promise<MessageEvent[]> {
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
  async "tools.stop"(context) {
    const { calls, finish } = await forcedCall(MESSAGES, context);
    must(calls.length > 0 && finish === "tool_use", { expected: 'stop_reason "tool_use"', seen: finish });
  },
  async "tools.single"(context) {
    const tool_choice = { type: "any", disable_parallel_tool_use: true };
    const body = MESSAGES.body(context, BOTH, { tools: messagesTools(), tool_choice });
    const answer = await context.good({ path: context.path("messages"), body }, "tools");
    const { calls } = readWhole(answer);
    // Gemini has no such flag; a gateway that names the dropped parameter has done its part.
    if (/parallel/.test(answer.header("x-sluice-dropped") ?? "")) {
      throw new Skip("the gateway says that it was dropped");
    }
    must(calls.length === 1, { expected: "one call", seen: calls });
  },
  "tools.failed": async (context) => {
    const answer = await forcedCall(MESSAGES, context);
    await goOn(MESSAGES, context, { words: WEATHER, answer, isError: true });
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
    const { calls, finish } = foldEvents(events);
    checkCalls(calls);
    must(finish === "tool_use", { expected: 'stop_reason "tool_use"', seen: finish });
  },
};
