/** Reads and recognizes encrypted reasoning, which has its own block type in this protocol, `redacted_thinking`. */
import { readSignature, REDACTED_ID } from "../canonical/signature.ts";
import type { ContentBlockOf, Signature, UnknownMembers } from "../canonical/types.ts";

const TYPE = "redacted_thinking";

/** The issuer of values without an envelope. */
const NATIVE_ISSUER = "anthropic";

/** Reads the data of a `redacted_thinking` block as hidden reasoning. Its unknown members keep the type. */
export function readRedacted(data: string): ContentBlockOf<"reasoning"> {
  const signature = readSignature(data, NATIVE_ISSUER);
  return {
    type: "reasoning",
    text: "",
    hidden: true,
    // In an envelope there may be the signature of another vendor, with its own id.
    signature: signature.issuer === NATIVE_ISSUER ? { ...signature, id: REDACTED_ID } : signature,
    unknownMembers: redactedMembers(),
  };
}

/** Returns the signature of an upstream's `redacted_thinking` block. */
export function redactedSignature(issuer: string, data: string): Signature {
  return { issuer, value: data, id: REDACTED_ID };
}

/** True for a signature that is the data of a `redacted_thinking` block. */
export function isRedactedSignature({ id }: Signature): boolean {
  return id === REDACTED_ID;
}

/** Returns the unknown members that mark reasoning as `redacted_thinking`. */
export function redactedMembers(): UnknownMembers {
  return { from: "messages", members: { type: TYPE } };
}

/**
 * Returns whether reasoning is written as `redacted_thinking`: it was read from such a block, or another protocol
 * returned it, which keeps only the signature and its id.
 */
export function isRedacted(
  { unknownMembers }: { unknownMembers?: UnknownMembers },
  signature: Signature | undefined,
): boolean {
  if (unknownMembers?.from === "messages" && unknownMembers.members.type === TYPE) return true;
  return signature?.issuer === NATIVE_ISSUER && isRedactedSignature(signature);
}
