/** Writes reasoning of earlier messages. */
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import type { ContentBlock } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { objectsOf } from "../members.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { writeDetails } from "./reasoning_details.ts";
import type { ChatWriteContext } from "./write_parts.ts";

/**
 * Writes reasoning of an earlier message, for spreading: signed blocks as `reasoning_details` if the upstream reads
 * them, plain text as `reasoning_content` if it wants it back. Anything else is named.
 */
export function writePastReasoning(blocks: readonly ContentBlock[], { prompt, target }: ChatWriteContext): JsonObject {
  const { dialect, issuer, dropped } = target;
  const details: JsonObject[] = [];
  const texts: string[] = [];
  for (const block of blocks) {
    if (dialect.reasoningDetails === true && isReadable(block, issuer)) {
      details.push(...writeDetail(block, { index: details.length }));
    } else if (block.type === "reasoning" && block.text !== "" && dialect.unsignedReasoning) {
      texts.push(block.text);
    } else {
      dropped.add(PARAMETER_NAMES[prompt.protocol].signed);
    }
  }
  return {
    ...(texts.length > 0 && { reasoning_content: texts.join("\n\n") }),
    ...(details.length > 0 && { reasoning_details: details }),
  };
}

function isReadable(block: ContentBlock, issuer: WriteTarget["issuer"]): boolean {
  return block.type === "vendor_specific" || (block.type === "reasoning" && block.signature?.issuer === issuer);
}

/** Formats that name an issuer, see `readReasoning`; such signatures go back without an envelope. */
const FORMAT = /^[a-z-]+-v\d+$/;

function writeDetail(block: ContentBlock, { index }: { index: number }): JsonObject[] {
  if (block.type === "vendor_specific") return objectsOf([block.value]);
  if (block.type !== "reasoning") return [];
  const { signature, text, hidden } = block;
  if (signature === undefined || !FORMAT.test(signature.issuer)) return writeDetails(block, index);
  const common = { id: signature.id ?? null, format: signature.issuer };
  const encrypted = { type: "reasoning.encrypted", data: signature.value, ...common };
  return hidden === true
    ? [{ ...encrypted, index }]
    : [{ type: "reasoning.summary", summary: text, ...common, index }, { ...encrypted, index: index + 1 }];
}
