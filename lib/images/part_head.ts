/** Reads the header lines of one part of a form. */
import { GatewayError } from "../errors.ts";
import { readParameters } from "./header_parameters.ts";

/** Headers of a part. */
export interface PartHead {
  /** Field name: 1 to 64 visible ASCII characters. */
  name: string;
  /** File name without its path, which is only used as a label. Absent for text fields. */
  filename?: string;
  /** Declared media type; "" if there is none. */
  type: string;
}

/** Maximum number of header lines in one part. */
const MAX_LINES = 16;

const LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):(.*)$/;
const NAME = /^[!-~]{1,64}$/;

/** Headers that decide how the part is read. None of them may be repeated. */
const READ_HEADERS = ["content-disposition", "content-type", "content-transfer-encoding"];

/**
 * Reads a part's header lines.
 * @param text the lines, separated by CRLF, without the final empty line
 * @throws {GatewayError} `invalid`
 */
export function readPartHead(text: string): PartHead {
  const headers = readLines(text);
  const disposition = headers.get("content-disposition");
  if (disposition === undefined) throw invalid("a part has no Content-Disposition");
  const { name, filename } = readDisposition(disposition);
  const type = headers.get("content-type") ?? "";
  const encoding = headers.get("content-transfer-encoding");
  if (encoding !== undefined && !/^(?:binary|8bit|7bit)$/i.test(encoding)) {
    throw invalid("it has a Content-Transfer-Encoding: send the bytes as they are", name);
  }
  if (/^multipart\//i.test(type)) throw invalid("it holds a form of its own: send each file as a part", name);
  const charset = /;[ \t]*charset[ \t]*=[ \t]*"?([^";\s]*)/i.exec(type)?.[1];
  if (filename === undefined && charset !== undefined && !/^(?:utf-?8|us-ascii)$/i.test(charset)) {
    throw invalid("its charset is not UTF-8", name);
  }
  return { name, ...(filename !== undefined && { filename }), type };
}

function readLines(text: string): Map<string, string> {
  const headers = new Map<string, string>();
  const lines = text === "" ? [] : text.split("\r\n");
  if (lines.length > MAX_LINES) throw invalid(`a part has more than ${MAX_LINES} header lines`);
  for (const line of lines) {
    const [, name, value = ""] = LINE.exec(line) ?? [];
    if (name === undefined) throw invalid("a part has a malformed header line");
    const key = name.toLowerCase();
    if (READ_HEADERS.includes(key) && headers.has(key)) throw invalid(`a part has ${name} twice`);
    headers.set(key, value.trim());
  }
  return headers;
}

function readDisposition(value: string): { name: string; filename: string | undefined } {
  if (!/^form-data[ \t]*(?:;|$)/i.test(value)) throw invalid('the Content-Disposition of a part is not "form-data"');
  const parameters = parametersOf(value);
  const name = unescape(parameters.get("name") ?? "");
  if (!NAME.test(name)) throw invalid("the name of a field is not 1 to 64 visible ASCII characters");
  const filename = parameters.get("filename") ?? decodeExtended(parameters.get("filename*"));
  return { name, filename: filename === undefined ? undefined : toLabel(unescape(filename)) };
}

function parametersOf(disposition: string): Map<string, string> {
  try {
    return readParameters(disposition);
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw invalid(`${cause.message} in the Content-Disposition of a part`);
  }
}

/** Decodes quotes and line breaks. Browsers percent-encode only these (WHATWG multipart/form-data). */
function unescape(text: string): string {
  return text.replace(/%(22|0[aA]|0[dD])/g, (_whole, hex) => String.fromCharCode(parseInt(hex, 16)));
}

/** Decodes an extended value such as `UTF-8''na%C3%AFve.png`. Forms should not use these, but some clients do. */
function decodeExtended(value: string | undefined): string | undefined {
  if (value === undefined) return undefined;
  try {
    return decodeURIComponent(/^utf-8'[^']*'(.*)$/i.exec(value)?.[1] ?? "");
  } catch {
    return "";
  }
}

/** Returns the last segment of a path, without control characters. */
function toLabel(filename: string): string {
  // deno-lint-ignore no-control-regex
  return filename.replace(/^.*[/\\]/s, "").replace(/[\u0000-\u001f\u007f]/g, "");
}

function invalid(why: string, name?: string): GatewayError {
  const where = name === undefined ? "the form" : `field "${name}"`;
  return new GatewayError("invalid", `Cannot read ${where}: ${why}`, name === undefined ? {} : { param: name });
}
