/** Responses: order and completeness of events. */
import type { Json } from "../../json/mod.ts";
import { type Checks, must } from "../check.ts";
import { checkNames, streamOf } from "../http_checks.ts";
import type { SuiteContext } from "../suite_context.ts";
import { DONE } from "../sse.ts";
import { checkUsage, lastResponse, readEvents, type ResponseEvent, RESPONSES, TERMINAL } from "./forms.ts";

async function events(context: SuiteContext): Promise<ResponseEvent[]> {
  return readEvents(await streamOf(RESPONSES, context));
}

/** Checks of streams. */
export const RESPONSES_STREAMS: Checks = {
  async "stream.names"(context) {
    const stream = await streamOf(RESPONSES, context);
    checkNames(stream, readEvents(stream));
  },
  async "stream.numbers"(context) {
    (await events(context)).forEach(({ type, sequence_number }, index) =>
      must(sequence_number === index, { expected: `sequence_number ${index} (${type})`, seen: sequence_number })
    );
  },
  async "stream.begin"(context) {
    const all = await events(context);
    const [first] = all;
    must(first?.type === "response.created", { expected: "response.created", seen: first?.type });
    const times = all.filter(({ type }) => type === "response.created").length;
    must(times === 1, { expected: "one response.created", seen: `${times} of them` });
    const { status, output } = Object(first.response);
    must(status === "in_progress" && Array.isArray(output), {
      expected: 'a response with status "in_progress" and output',
      seen: first.response,
    });
  },
  async "stream.end"(context) {
    const all = await events(context);
    const ends = all.filter(({ type }) => TERMINAL.includes(type));
    must(ends.length === 1, { expected: "one event that ends", seen: ends.map(({ type }) => type) });
    must(all.at(-1)?.type === "response.completed", { expected: "response.completed", seen: all.at(-1)?.type });
  },
  async "stream.done"(context) {
    const { events } = await streamOf(RESPONSES, context);
    const done = events.filter(({ data }) => data === DONE).length;
    must(done === 1, { expected: "one [DONE]", seen: `${done} of them` });
    must(events.at(-1)?.data === DONE, { expected: "[DONE] at the end", seen: events.at(-1)?.data });
  },
  async "stream.items"(context) {
    const all = await events(context);
    const added = all.filter(({ type }) => type === "response.output_item.added");
    const done = all.filter(({ type }) => type === "response.output_item.done");
    added.forEach(({ output_index }, index) =>
      must(output_index === index, { expected: `output_index ${index}`, seen: output_index })
    );
    must(added.length > 0, { expected: "response.output_item.added", seen: "none" });
    const places = (list: ResponseEvent[]) =>
      list.map(({ output_index, item }) => `${output_index} ${Object(item).id}`);
    must(String(places(added)) === String(places(done)), {
      expected: `done as added: ${places(added)}`,
      seen: places(done).join(),
    });
  },
  async "stream.parts"(context) {
    const open = new Map<string, string>();
    let closed = 0;
    for (const { type, item_id, content_index, delta, text, part } of await events(context)) {
      const place = `${item_id} ${content_index}`;
      const soFar = open.get(place);
      if (type === "response.content_part.added") {
        must(soFar === undefined, { expected: "each part added once", seen: place });
        open.set(place, "");
      } else if (type === "response.output_text.delta") {
        must(soFar !== undefined, { expected: "content_part.added before the text", seen: type });
        open.set(place, soFar + String(delta));
      } else if (type === "response.output_text.done") {
        must(soFar === text, { expected: `the text ${JSON.stringify(soFar)}`, seen: text as Json });
      } else if (type === "response.content_part.done") {
        const whole = Object(part).text;
        must(soFar !== undefined && (whole === undefined || whole === soFar), {
          expected: "the part's text",
          seen: part,
        });
        open.delete(place);
        closed++;
      }
    }
    must(open.size === 0 && closed > 0, { expected: "content_part.done of each part", seen: `${open.size} open` });
  },
  async "stream.whole"(context) {
    const all = await events(context);
    const { output, body } = lastResponse(all);
    const done = all.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
    must(output.length > 0 && JSON.stringify(body.output) === JSON.stringify(done), {
      expected: "the items that were done",
      seen: body.output,
    });
    const [{ id: first }] = [Object(all[0]?.response)];
    must(body.id === first, { expected: `id ${first}`, seen: body.id });
  },
  "stream.usage": async (context) => void checkUsage(lastResponse(await events(context)).usage),
  async "stream.alive"(context) {
    const odd = (await events(context)).find(({ type }) => !type.startsWith("response.") && type !== "error");
    must(odd === undefined, { expected: "types that begin with response.", seen: odd?.type });
  },
};
