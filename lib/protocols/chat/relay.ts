/** Chat through and through: the model's id in every chunk, and no usage that nobody asked for. */
import { findValue, type Span, spliceMembers } from "../../json_splice.ts";
import { alikeEdit } from "../alike.ts";
import type { Echo, Frame } from "../codec.ts";
import type { Relay } from "../relay.ts";
import { alikeChunks } from "./alike_chunks.ts";
import { writer } from "./stream.ts";

const DONE: Frame = { data: "[DONE]" };

/** Relays chat completions. The usage is always asked for, as the gateway meters by it. */
export const chatRelay: Relay = {
  streamEdits({ text, members }) {
    const options = members.find(({ name }) => name === "stream_options");
    const asked = options === undefined ? "" : text.slice(options.start, options.end);
    return { stream_options: spliceMembers(asked.startsWith("{") ? asked : "{}", { include_usage: "true" }) };
  },
  machine(echo) {
    const edit = alikeEdit((data) => editChunk(data, echo), alikeChunks);
    return {
      push({ data }) {
        const edited = data === DONE.data ? undefined : edit(data);
        return edited === undefined ? [] : [{ data: edited }];
      },
      end: () => [DONE],
      fail: (error) => writer(echo).push({ type: "error", error }),
    };
  },
};

/** A chunk as the client gets it; `undefined` for one that it does not get. */
function editChunk(data: string, echo: Echo): string | undefined {
  const usage = findValue(data, ["usage"]);
  const unasked = usage !== undefined && echo.prompt.includeUsage !== true;
  if (unasked && isUsageOnly(data, usage)) return undefined;
  const edits: Record<string, string | undefined> = {};
  if (findValue(data, ["model"]) !== undefined) edits.model = JSON.stringify(echo.model);
  if (unasked) edits.usage = undefined;
  return data.trimStart().startsWith("{") ? spliceMembers(data, edits) : data;
}

/** True for the chunk that carries the usage and no choice. Azure's first chunk has neither: it stays. */
function isUsageOnly(data: string, usage: Span): boolean {
  if (data.startsWith("null", usage.start)) return false;
  const choices = findValue(data, ["choices"]);
  return choices !== undefined && /^\[\s*\]$/.test(data.slice(choices.start, choices.end));
}
