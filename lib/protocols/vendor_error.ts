/** Facts about a vendor's error for the log and the ledger, with secrets removed. */
import type { GatewayError, VendorError } from "../errors.ts";
import { isObject, type Json } from "../json/mod.ts";
import { redactSecrets, redactShapes } from "../redact.ts";
import { stringOf } from "./members.ts";

/** Maximum number of UTF-16 code units of a vendor's message that are logged. */
const LOGGED_MESSAGE = 300;

/** Describes an error by its HTTP status and its body, or the event of an answer that it is in. */
export function describeVendorError(status: number, body: Json): VendorError {
  const message = redactShapes(vendorMessage(body), LOGGED_MESSAGE).slice(0, LOGGED_MESSAGE);
  return { status, ...codeOf(body), ...(message !== "" && { message }) };
}

/** Describes a page in place of an answer; `undefined` for any other text, which may be a part of an answer. */
export function describePage(status: number, text: string): VendorError | undefined {
  return pageMessage(text) ? describeVendorError(status, text) : undefined;
}

/** Longest title of a page that is logged, in UTF-16 code units. */
const MAX_TITLE_LENGTH = 100;

/**
 * Returns the title of a page of HTML or XML, such as a proxy in front of a vendor sends; empty for a page of XML
 * without one; `undefined` for any other text. Only the title is logged, because the rest may repeat the request.
 */
function pageMessage(text: string): string | undefined {
  const start = text.trimStart().slice(0, 4_096);
  if (!start.startsWith("<")) return undefined;
  const [, title = ""] = /<title>([^<]*)/i.exec(start) ?? [];
  if (title.trim() !== "") return `HTML page: ${title.trim().slice(0, MAX_TITLE_LENGTH)}`;
  return /^<(?:!doctype html|html)\b/i.test(start) ? "HTML page" : "";
}

/** Adds the vendor's own words to an error inside an answer, whose status is 200. */
export function errorInside(body: Json, error: GatewayError): GatewayError {
  return error.with({ vendor: describeVendorError(200, body) });
}

/** The code of an error body in the forms of OpenAI, Google (`status`) and Anthropic (`type`). */
function codeOf(body: Json): Pick<VendorError, "code"> {
  const value = Array.isArray(body) ? body[0] : body;
  const error = isObject(value) ? value.error : undefined;
  if (!isObject(error)) return {};
  const code = stringOf(error.code) ?? stringOf(error.status) ?? stringOf(error.type);
  // Anything else may hold a secret, or a text of the client's.
  const isCode = code !== undefined && /^[A-Za-z0-9_.-]{1,64}$/.test(code) && redactSecrets(code) === code;
  return isCode ? { code } : {};
}

/** Returns the message of an error body in the forms of OpenAI, Anthropic, Google and FastAPI; empty without one. */
function vendorMessage(body: Json): string {
  // Google wraps errors of streams into a list.
  const value = Array.isArray(body) ? body[0] : body;
  if (!isObject(value)) return typeof value === "string" ? pageMessage(value) ?? value : "";
  const { error } = value;
  const inner = isObject(error) ? stringOf(error.message) : stringOf(error);
  return inner ?? stringOf(value.message) ?? stringOf(value.detail) ?? "";
}
