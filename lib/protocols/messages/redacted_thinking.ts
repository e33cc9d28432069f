/** Encrypted reasoning, which has a block type of its own in this protocol. */
import { readSignature, REDACTED_ID } from "../canonical/signature.ts";
import type { ContentBlockOf, Signature, UnknownMembers } from "../canonical/types.ts";

const TYPE = "redacted_thinking";

/** The issuer of values without an envelope. */
const NATIVE = "anthropic";

/** Reads a `redacted_thinking` block as hidden reasoning whose unknown members have the type. */
export function readRedacted(data: string): ContentBlockOf<"reasoning"> {
  const signature = readSignature(data, NATIVE);
  return {
    type: "reasoning",
    text: "",
    hidden: true,
    // An envelope may have another vendor's signature with an id of its own.
    signature: signature.issuer === NATIVE ? { ...signature, id: REDACTED_ID } : signature,
    unknownMembers: redactedMembers(),
  };
}

/** Returns the signature of an upstream's `redacted_thinking` block. */
export function redactedSignature(issuer: string, data: string): Signature {
  return { issuer, value: data, id: REDACTED_ID };
}

/** True for the data of a `redacted_thinking` block. */
export function isRedactedSignature({ id }: Signature): boolean {
  return id === REDACTED_ID;
}

/** Returns the unknown members that mark reasoning as `redacted_thinking`. */
export function redactedMembers(): UnknownMembers {
  return { from: "messages", members: { type: TYPE } };
}

/**
 * True for reasoning that is written as `redacted_thinking`: it came as such, or from another protocol, which keeps
 * only Anthropic's signature with its id.
 */
export function isRedacted(
  { unknownMembers }: { unknownMembers?: UnknownMembers },
  signature: Signature | undefined,
): boolean {
  if (unknownMembers?.from === "messages" && unknownMembers.members.type === TYPE) return true;
  return signature?.issuer === NATIVE && isRedactedSignature(signature);
}
