/** Writes reasoning options, and reasoning of earlier messages. */
import { effortOfBudget } from "../canonical/effort_of_budget.ts";
import { PARAMETER_NAMES } from "../canonical/parameter_names.ts";
import { type ContentBlock, type Effort, EFFORTS, type Reasoning } from "../canonical/types.ts";
import type { JsonObject } from "../../json/mod.ts";
import { objectsOf } from "../members.ts";
import type { WriteTarget } from "../upstream_codec.ts";
import { writeDetails } from "./reasoning_details.ts";
import { type ChatWriteContext, ownUnknownMembers } from "./write_parts.ts";

/**
 * Writes `reasoning_effort`, for spreading. A budget becomes an effort. How much reasoning is shown is up to the
 * gateway.
 */
export function writeEffort({ prompt, target }: ChatWriteContext): JsonObject {
  const { reasoning, protocol } = prompt;
  if (reasoning === undefined) return {};
  const { dropped, row, dialect } = target;
  for (const name of Object.keys(ownUnknownMembers(reasoning.unknownMembers, dropped))) {
    dropped.add(`reasoning.${name}`);
  }
  if (reasoning.encrypted === true && dialect.reasoningDetails !== true) dropped.add("include");
  const wanted = wantedEffort(reasoning);
  if (wanted === undefined) return {};
  const names = PARAMETER_NAMES[protocol];
  if (row.reasoning === undefined) {
    // For a model without reasoning, the effort "none" changes nothing.
    if (wanted !== "none") dropped.add(names.effort);
    return {};
  }
  const effort = fitEffort(wanted, row.reasoning.efforts);
  if (wanted === "none" && effort !== "none") dropped.add(names.off);
  else if (reasoning.effort !== undefined && effort !== wanted) dropped.add(names.effort);
  return effort === undefined ? {} : { reasoning_effort: effort };
}

/** Absent if the model decides, which is the default. */
function wantedEffort({ mode, effort, budgetTokens }: Reasoning): Effort | undefined {
  if (mode === "off") return "none";
  if (effort !== undefined) return effort;
  return budgetTokens === undefined ? undefined : effortOfBudget(budgetTokens);
}

/** Returns the highest supported effort up to the wanted one, else the lowest. */
function fitEffort(wanted: Effort, known: readonly Effort[]): Effort | undefined {
  const sorted = EFFORTS.filter((effort) => known.includes(effort));
  const depth = EFFORTS.indexOf(wanted);
  // `none` is used only if it is wanted.
  const fitting = sorted.filter((effort) =>
    EFFORTS.indexOf(effort) <= depth && (effort !== "none" || wanted === "none")
  );
  return fitting.at(-1) ?? sorted.find((effort) => effort !== "none") ?? sorted[0];
}

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
