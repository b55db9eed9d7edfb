export default {
  "title": ["Questions", "待答"],
};
