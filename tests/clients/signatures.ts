/** Checks whether reasoning that a client sends back reaches its issuer. */
import { fromBase64Url, toBase64Url } from "../../lib/protocols/canonical/signature.ts";
import type { Body } from "./sse.ts";
import { droppedNames } from "./upstreams.ts";

/** A gateway puts the signatures of other issuers into envelopes. */
const ENVELOPE = "sluice1.";

/** Members that sign reasoning, in any protocol. */
const SIGNATURES = new Set(["signature", "data", "encrypted_content"]);

/** Names of dropped reasoning. */
const NAMES = ["reasoning_details", "reasoning_content", "input.reasoning", "messages.thinking"];

/** A conversation whose signatures are all forged, each still in its envelopes. */
export function tampered<T>(conversation: T): T {
  return JSON.parse(
    JSON.stringify(conversation, (key, value) => {
      const isSignature = SIGNATURES.has(key) && typeof value === "string" && value !== "";
      return isSignature ? tamper(value) : value;
    }),
  );
}

function tamper(signature: string): string {
  if (signature.startsWith(ENVELOPE)) {
    const { value, ...rest }: { value: string } = JSON.parse(fromBase64Url(signature.slice(ENVELOPE.length)));
    return ENVELOPE + toBase64Url(JSON.stringify({ ...rest, value: tamper(value) }));
  }
  const middle = Math.floor(signature.length / 2);
  return `${signature.slice(0, middle)}${signature[middle] === "A" ? "B" : "A"}${signature.slice(middle + 1)}`;
}

/** True if a conversation holds a signature. */
export function isSigned(conversation: unknown): boolean {
  return JSON.stringify(tampered(conversation)) !== JSON.stringify(conversation);
}

/** Names of the reasoning that was dropped from a request. */
export function lostReasoning(response: Response): string[] {
  return droppedNames(response).filter((name) => NAMES.includes(name));
}

/** A pending call of an SDK, with its answer and headers. */
interface Pending {
  withResponse(): Promise<{ data: unknown; response: Response }>;
}

/**
 * Returns whether changed signatures are detected: by a 400, or by dropping reasoning that is kept with genuine ones.
 * @throws any other error of the call
 */
export async function isNoticed<T>(ask: (conversation: T) => Pending, conversation: T): Promise<boolean> {
  const whole = lostReasoning((await ask(conversation).withResponse()).response);
  try {
    const changed = lostReasoning((await ask(tampered(conversation)).withResponse()).response);
    return changed.some((name) => !whole.includes(name));
  } catch (error) {
    if ((error as Body).status === 400) return true;
    throw error;
  }
}
