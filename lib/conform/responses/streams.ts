/** Responses: the order and the completeness of events. */
import type { Json } from "../../json/mod.ts";
import { type Check, must } from "../check.ts";
import { checkNames, streamOf, wholeOf } from "../common.ts";
import type { Context } from "../context.ts";
import { DONE } from "../wire.ts";
import { checkUsage, type Event, lastResponse, readEvents, readWhole, RESPONSES, TERMINAL } from "./forms.ts";

async function events(context: Context): Promise<Event[]> {
  return readEvents(await streamOf(RESPONSES, context));
}

/** Checks of streams. */
export const RESPONSES_STREAMS: readonly Check[] = [
  {
    id: "responses.stream.names",
    part: "responses",
    title: "Every event has an event line, equal to the type in its data",
    why: "Strict parsers read the line, others the type",
    async run(context) {
      const stream = await streamOf(RESPONSES, context);
      checkNames(stream, readEvents(stream));
    },
  },
  {
    id: "responses.stream.numbers",
    part: "responses",
    title: "sequence_number begins with 0 and grows by 1",
    why: "Clients find losses by it",
    async run(context) {
      (await events(context)).forEach(({ type, sequence_number }, index) =>
        must(sequence_number === index, { expected: `sequence_number ${index} (${type})`, seen: sequence_number })
      );
    },
  },
  {
    id: "responses.stream.begin",
    part: "responses",
    title: "The first event is response.created, once, with a response in progress",
    why: "SDK helpers throw at any other first event",
    async run(context) {
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
  },
  {
    id: "responses.stream.end",
    part: "responses",
    title: "The last event is response.completed, once",
    why: "Clients that do not see it take the stream for broken, and ask again",
    async run(context) {
      const all = await events(context);
      const ends = all.filter(({ type }) => TERMINAL.includes(type));
      must(ends.length === 1, { expected: "one event that ends", seen: ends.map(({ type }) => type) });
      must(all.at(-1)?.type === "response.completed", { expected: "response.completed", seen: all.at(-1)?.type });
    },
  },
  {
    id: "responses.stream.done",
    part: "responses",
    title: "The stream ends with data: [DONE], once, and nothing after it",
    why: "Open Responses requires it",
    async run(context) {
      const { events } = await streamOf(RESPONSES, context);
      const done = events.filter(({ data }) => data === DONE).length;
      must(done === 1, { expected: "one [DONE]", seen: `${done} of them` });
      must(events.at(-1)?.data === DONE, { expected: "[DONE] at the end", seen: events.at(-1)?.data });
    },
  },
  {
    id: "responses.stream.items",
    part: "responses",
    title: "Every item is added and done once, under an output_index that counts from 0",
    why: "SDK helpers put items together by their place",
    async run(context) {
      const all = await events(context);
      const added = all.filter(({ type }) => type === "response.output_item.added");
      const done = all.filter(({ type }) => type === "response.output_item.done");
      added.forEach(({ output_index }, index) =>
        must(output_index === index, { expected: `output_index ${index}`, seen: output_index })
      );
      must(added.length > 0, { expected: "response.output_item.added", seen: "none" });
      const places = (list: Event[]) => list.map(({ output_index, item }) => `${output_index} ${Object(item).id}`);
      must(String(places(added)) === String(places(done)), {
        expected: `done as added: ${places(added)}`,
        seen: places(done).join(),
      });
    },
  },
  {
    id: "responses.stream.parts",
    part: "responses",
    title: "Text comes between content_part.added and .done, and its pieces make up the whole",
    why: "SDK helpers throw at pieces of a part that nobody opened",
    async run(context) {
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
  },
  {
    id: "responses.stream.whole",
    part: "responses",
    title: "The last event carries the whole output, as its items were done",
    why: "Many clients read nothing else",
    async run(context) {
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
  },
  {
    id: "responses.stream.usage",
    part: "responses",
    title: "The last event has the usage",
    why: "There is no other place for it",
    run: async (context) => void checkUsage(lastResponse(await events(context)).usage),
  },
  {
    id: "responses.stream.alive",
    part: "responses",
    title: "Keep-alives are comments, not events of a type that no client knows",
    why: "SDK helpers throw at unknown types, and the Open Responses suite at keepalive",
    async run(context) {
      const odd = (await events(context)).find(({ type }) => !type.startsWith("response.") && type !== "error");
      must(odd === undefined, { expected: "types that begin with response.", seen: odd?.type });
    },
  },
  {
    id: "responses.stream.same",
    part: "responses",
    title: "Whole and streamed, the same prompt has the same number of tokens, and so has the same answer",
    why: "Streaming must not change the bill",
    async run(context) {
      const said = readWhole(await wholeOf(RESPONSES, context));
      const streamed = lastResponse(await events(context));
      const [one, other] = [checkUsage(said.usage), checkUsage(streamed.usage)];
      must(one.input_tokens === other.input_tokens, { expected: "equal input_tokens", seen: [one, other] });
      const thought = [one, other].some((usage) => usage.output_tokens_details.reasoning_tokens > 0);
      if (said.text !== streamed.text || thought) return "the two answers differ, so that only the prompt was compared";
      must(one.output_tokens === other.output_tokens, {
        expected: "equal output_tokens of equal texts",
        seen: [one, other],
      });
    },
  },
];
