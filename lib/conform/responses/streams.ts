/** Checks of streams of the responses protocol: order and completeness of events. */
import type { Json } from "../../json/mod.ts";
import { expectThat } from "../check.ts";
import type { ProtocolChecks } from "../protocol_client.ts";
import { checkDone, checkNames } from "../shared_checks.ts";
import { checkUsage, type ResponseAnswer, type ResponseEvent, RESPONSES, TERMINAL } from "./forms.ts";

/** Checks of streams. */
export const STREAMS: ProtocolChecks<ResponseAnswer, ResponseEvent> = {
  "stream.names": checkNames,
  async "stream.numbers"(client) {
    (await client.readyEvents()).forEach(({ type, sequence_number }, index) =>
      expectThat(sequence_number === index, { expected: `sequence_number ${index} (${type})`, seen: sequence_number })
    );
  },
  async "stream.begin"(client) {
    const all = await client.readyEvents();
    const [first] = all;
    expectThat(first?.type === "response.created", { expected: "response.created", seen: first?.type });
    const count = all.filter(({ type }) => type === "response.created").length;
    expectThat(count === 1, { expected: "one response.created", seen: `${count} of them` });
    const { status, output } = Object(first.response);
    expectThat(status === "in_progress" && Array.isArray(output), {
      expected: 'a response with status "in_progress" and output',
      seen: first.response,
    });
  },
  async "stream.end"(client) {
    const all = await client.readyEvents();
    const ends = all.filter(({ type }) => TERMINAL.includes(type));
    expectThat(ends.length === 1, { expected: "one event that ends", seen: ends.map(({ type }) => type) });
    expectThat(all.at(-1)?.type === "response.completed", { expected: "response.completed", seen: all.at(-1)?.type });
  },
  "stream.done": checkDone,
  async "stream.items"(client) {
    const all = await client.readyEvents();
    const added = all.filter(({ type }) => type === "response.output_item.added");
    const done = all.filter(({ type }) => type === "response.output_item.done");
    added.forEach(({ output_index }, index) =>
      expectThat(output_index === index, { expected: `output_index ${index}`, seen: output_index })
    );
    expectThat(added.length > 0, { expected: "response.output_item.added", seen: "none" });
    const positions = (list: ResponseEvent[]) =>
      list.map(({ output_index, item }) => `${output_index} ${Object(item).id}`);
    expectThat(String(positions(added)) === String(positions(done)), {
      expected: `done as added: ${positions(added)}`,
      seen: positions(done).join(),
    });
  },
  async "stream.parts"(client) {
    /** Texts so far of parts that are not done. */
    const open = new Map<string, string>();
    let closed = 0;
    for (const { type, item_id, content_index, delta, text, part } of await client.readyEvents()) {
      const partId = `${item_id} ${content_index}`;
      const soFar = open.get(partId);
      if (type === "response.content_part.added") {
        expectThat(soFar === undefined, { expected: "each part added once", seen: partId });
        open.set(partId, "");
      } else if (type === "response.output_text.delta") {
        expectThat(soFar !== undefined, { expected: "content_part.added before the text", seen: type });
        open.set(partId, soFar + String(delta));
      } else if (type === "response.output_text.done") {
        expectThat(soFar === text, { expected: `the text ${JSON.stringify(soFar)}`, seen: text as Json });
      } else if (type === "response.content_part.done") {
        const finalText = Object(part).text;
        expectThat(soFar !== undefined && (finalText === undefined || finalText === soFar), {
          expected: "the part's text",
          seen: part,
        });
        open.delete(partId);
        closed++;
      }
    }
    expectThat(open.size === 0 && closed > 0, {
      expected: "content_part.done of each part",
      seen: `${open.size} open`,
    });
  },
  async "stream.whole"(client) {
    const all = await client.readyEvents();
    const { output, body } = RESPONSES.aggregate(all);
    const done = all.filter(({ type }) => type === "response.output_item.done").map(({ item }) => item);
    expectThat(output.length > 0 && JSON.stringify(body.output) === JSON.stringify(done), {
      expected: "the items that were done",
      seen: body.output,
    });
    const [{ id: first }] = [Object(all[0]?.response)];
    expectThat(body.id === first, { expected: `id ${first}`, seen: body.id });
  },
  "stream.usage": async (client) => void checkUsage(RESPONSES.aggregate(await client.readyEvents()).usage),
  async "stream.alive"(client) {
    const unknown = (await client.readyEvents()).find(({ type }) => !type.startsWith("response.") && type !== "error");
    expectThat(unknown === undefined, { expected: "types that begin with response.", seen: unknown?.type });
  },
};
