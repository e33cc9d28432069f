/** Parser for header parameters, as in `form-data; name="image"; filename="a.png"`. */

/** `; name=value`. In quotes, a backslash escapes only a quote or a backslash, because clients send Windows paths. */
const PARAMETER = /;[ \t]*(?:([^\s;="]+)=(?:"((?:[^"\\]|\\["\\]|\\(?!["\\]))*)"|([^\s;"]+))[ \t]*)?/y;

/**
 * Parses the parameters after a header's main value. Names are in lower case.
 * @throws {SyntaxError} for malformed or repeated parameters
 */
export function readParameters(header: string): Map<string, string> {
  const parameters = new Map<string, string>();
  for (let at = header.indexOf(";"); at >= 0 && at < header.length;) {
    PARAMETER.lastIndex = at;
    const match = PARAMETER.exec(header);
    if (match === null) throw new SyntaxError("its parameters are malformed");
    const [whole, name, quoted, bare = ""] = match;
    at += whole.length;
    if (name === undefined) continue;
    const key = name.toLowerCase();
    if (parameters.has(key)) throw new SyntaxError("a parameter comes twice");
    parameters.set(key, quoted?.replace(/\\(["\\])/g, "$1") ?? bare);
  }
  return parameters;
}
