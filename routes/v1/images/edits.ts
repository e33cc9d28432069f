export { editImages as POST } from "../../../lib/images/serve.ts";
