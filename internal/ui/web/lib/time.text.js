export default {
  "hours": ["{h} h {m} min", "{h} 小时 {m} 分"],
  "ago.now": ["just now", "刚刚"],
  "ago.seconds": ["{n} s ago", "{n} 秒前"],
  "ago.minutes": ["{n} min ago", "{n} 分钟前"],
  "ago.hours": ["{n} h ago", "{n} 小时前"],
  "bytes": ["{n} byte|{n} bytes", "{n} 字节"],
};
