/** Responses: streamed tool calls, and the tools that a response repeats. */
import { type Checks, must, Skip } from "../check.ts";
import { streaming } from "../http_checks.ts";
import type { SuiteContext } from "../suite_context.ts";
import { checkCalls, forcedCall } from "../shared_checks.ts";
import { BOTH } from "../prompts.ts";
import { lastResponse, readEvents, type ResponseEvent, RESPONSES, responsesTools } from "./forms.ts";

function streamBoth(context: SuiteContext): Promise<ResponseEvent[]> {
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
  async "tools.echo"(context) {
    const { tools } = (await forcedCall(RESPONSES, context)).body;
    for (const tool of Array.isArray(tools) ? tools : [undefined]) {
      const missing = ["type", "name", "description", "parameters", "strict"].filter((name) => !(name in Object(tool)));
      must(missing.length === 0, { expected: `tools with ${missing.join(", ")}`, seen: tool });
    }
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
    checkCalls(lastResponse(events).calls);
  },
};
