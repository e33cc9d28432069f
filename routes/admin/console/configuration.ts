export { changeConfiguration as POST, configurationPage as GET } from "../../../lib/console/configuration.tsx";
